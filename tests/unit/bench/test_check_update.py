"""``--update`` writes lists and golden files, and nothing else of a check."""

import json
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.support.checks import played, sentinel
from tests.support.recordings import at, event, write_journal

from hankwatch.bench.check.result import CheckResult
from hankwatch.core.errors import InfrastructureError

WRITTEN = """{
  "expect": { "reports": {"it": [{"contains":   "1"}, { "equalsFile": "new/it.md" }]},
\t"fires": {
\t\t"it": [ {"cause": "quiet"},
\t\t   {} ]   ,
\t\t"other": 0
\t}
  },
  "description": "Umläute, \\u00e4 and an odd   layout"
}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sentinel(tmp_path / "sentinel.json")
    write_journal(tmp_path / "recording.jsonl", [event(number, "info", at(number)) for number in (1, 2, 3)])
    return tmp_path


def carried_out(path: Path, *, rewrite: bool = True) -> CheckResult:
    return anyio.run(partial(played, path, rewrite=rewrite))


def update(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    first = carried_out(path)
    after = path.read_bytes()
    again = carried_out(path)
    assert (again.updated, path.read_bytes(), again.outcome) == ((), after, first.outcome)
    return after.decode()


def test_lists_and_golden_files_are_written_and_every_other_character_stays(folder: Path) -> None:
    text = WRITTEN.replace(',\n\t\t"other": 0', "")
    fires = ",\n".join(f'\t\t  {{ "cause": "match", "at": "{at(n)}", "eventCount": 1 }}' for n in (1, 2, 3))
    before, _, rest = text.partition("[ {")
    expected = f"{before}[\n{fires}\n\t\t]{rest.partition(']')[2]}"
    assert update(folder / "check.json", text) == expected
    assert (folder / "new" / "it.md").read_text() == "\n---\n1\n\n---\n2\n\n---\n3\n"
    assert carried_out(folder / "check.json", rewrite=False).outcome == "passed"


@pytest.mark.parametrize(
    "expect", [{"fires": {"it": 2}}, {"fires": {"it": {"max": 2}}}, {"reports": {"it": [{"contains": "x"}]}}]
)
def test_what_people_wrote_is_not_changed_and_stays_a_failure(expect: object, folder: Path) -> None:
    text = json.dumps({"expect": expect})
    assert update(folder / "check.json", text) == text
    assert carried_out(folder / "check.json").outcome == "failed"


def test_line_ends_and_byte_order_mark_stay(folder: Path) -> None:
    text = '\ufeff{\r\n  "expect": {\r\n    "fires": { "it": [] }\r\n  }\r\n}\r\n'
    after = update(folder / "check.json", text)
    assert after.startswith('\ufeff{\r\n  "expect": {\r\n    "fires": { "it": [\r\n      { "cause": "match"')
    assert after.count("\n") == after.count("\r\n") == 9


def test_errors_that_are_listed_are_written_too(folder: Path) -> None:
    sentinel(folder / "sentinel.json", userPromptText="{{ it.nothing.there }}")
    text = '{"expect": {"errors": {"it": []}, "fires": {"it": []}}}'
    after = json.loads(update(folder / "check.json", text))
    assert after["expect"]["errors"]["it"] == ["template-render-failed"] * 3
    assert len(after["expect"]["fires"]["it"]) == 3


def test_a_full_disk_is_no_fault_of_the_check_and_leaves_it_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    text = '{"expect": {"fires": {"it": []}}}'
    monkeypatch.setattr("hankwatch.bench.check.update.replace_file", full)
    with pytest.raises(InfrastructureError, match="No space left"):
        update(folder / "check.json", text)
    assert (folder / "check.json").read_text() == text
