"""A check's file: its two forms, and each fault of it with its place and what would be right."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.checks import played, sentinel, write_check
from tests.support.recordings import event, write_journal

from hankwatch.bench.check.load import check_id, find_checks, is_check, load_check
from hankwatch.bench.check.model import Check
from hankwatch.bench.check.rules import TESTS, check_rules
from hankwatch.bench.replay import EVERYTHING
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import validate
from hankwatch.core.errors import ConfigError, UsageError


def faults(path: Path) -> list[tuple[str, str, str | None]]:
    """Pointer, code and hint of every fault."""
    with pytest.raises(ConfigError) as refused:
        load_check(path)
    assert all(fault.file == str(path) and fault.line for fault in refused.value.diagnostics)
    return [(fault.pointer, fault.code, fault.hint) for fault in refused.value.diagnostics]


def expecting(folder: Path, **expect: Any) -> Path:
    return write_check(folder / "it.check.json", expect)


def test_everything_wrong_with_the_keys_is_told_at_once(tmp_path: Path) -> None:
    path = expecting(
        tmp_path, fires={"a": [{"cause": "quiett"}], "b": -1}, report={}, reports={"a": [{"contians": "x"}]}
    )
    found = faults(path)
    assert ("/expect/fires/a/0/cause", "unknown-value", "did you mean 'quiet'?") in found
    assert ("/expect/report", "unknown-key", "did you mean 'reports'?") in found
    assert ("/expect/reports/a/0/contians", "unknown-key", "did you mean 'contains'?") in found
    assert any(pointer == "/expect/fires/b" for pointer, *_ in found)


RULES: list[tuple[dict[str, Any], str, str]] = [
    ({"fires": {"a": {"min": 3, "max": 2}}}, "/expect/fires/a/min", "out-of-range"),
    ({"fires": {"a": {}}}, "/expect/fires/a", "missing-key"),
    ({"fires": {"a/b": [{"at": "noon"}]}}, "/expect/fires/a~1b/0/at", "bad-format"),
    ({"reports": {"a": [{}]}}, "/expect/reports/a/0", "missing-key"),
    ({"reports": {"a": [{"entry": 1}]}}, "/expect/reports/a/0", "missing-key"),
    ({"reports": {"a": []}}, "/expect/reports/a", "too-short"),
    ({"reports": {"a": [{"matches": "("}]}}, "/expect/reports/a/0/matches", "invalid-regex"),
    ({"reports": {"a": [{"exists": True}]}}, "/expect/reports/a/0/exists", "missing-key"),
    ({"reports": {"a": [{"pointer": "x", "exists": True}]}}, "/expect/reports/a/0/pointer", "bad-format"),
    ({"reports": {"a": [{"equalsFile": "/etc/x"}]}}, "/expect/reports/a/0/equalsFile", "path-refused"),
    ({"reports": {"a": [{"equalsFile": "x", "entry": 1}]}}, "/expect/reports/a/0/equalsFile", "conflicting-keys"),
    ({"reports": {"a": [{"schema": "none.json"}]}}, "/expect/reports/a/0/schema", "file-unreadable"),
    ({"reports": {"a": [{"schema": "it.md"}]}}, "/expect/reports/a/0/schema", "file-unreadable"),
    ({"reports": {"a": [{"schema": "list.json"}]}}, "/expect/reports/a/0/schema", "schema-invalid"),
    ({"reports": {"a": [{"contains": None}]}}, "/expect/reports/a/0/contains", "wrong-type"),
    ({"journal": "C:\\x"}, "/expect/journal", "path-refused"),
    ({"journal": "a/../../x"}, "/expect/journal", "path-refused"),
    ({"reports": {"a": [{"equalsFile": "link/x"}]}}, "/expect/reports/a/0/equalsFile", "path-refused"),
]


@pytest.mark.parametrize(
    ("expect", "pointer", "code"), RULES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_broken_rule_is_told_at_its_place(expect: dict[str, Any], pointer: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "it.md").write_text("no json")
    (tmp_path / "list.json").write_text("[]")
    assert [(at, kind) for at, kind, _ in faults(expecting(tmp_path, **expect))] == [(pointer, code)]


def test_files_that_are_not_there_are_told_together(tmp_path: Path) -> None:
    path = write_check(tmp_path / "x.check.json", recording="a", calls="b", sentinel="stock:narator")
    assert faults(path) == [
        ("/recording", "file-unreadable", None),
        ("/calls", "file-unreadable", None),
        ("/sentinel", "unknown-sentinel", "did you mean 'stock:narrator'?"),
    ]
    both = write_check(tmp_path / "y.check.json", sentinel="stock:narrator", hank="hank.json")
    assert [(at, kind) for at, kind, _ in faults(both)] == [
        ("/sentinel", "conflicting-keys"),
        ("/hank", "file-unreadable"),
    ]


def test_a_sentinel_that_does_not_watch_here_is_a_fault_with_a_guess(tmp_path: Path) -> None:
    path = write_check(tmp_path / "x.check.json", {"fires": {"narator": 1}}, sentinel="stock:narrator")
    assert faults(path) == [("/expect/fires/narator", "unknown-sentinel", "did you mean 'narrator'?")]


def test_faults_of_the_sentinel_are_the_checks(tmp_path: Path) -> None:
    sentinel(tmp_path / "it.json", model="")
    with pytest.raises(ConfigError, match=r"it\.json:1"):
        load_check(write_check(tmp_path / "x.check.json", sentinel="it.json"))


def test_the_folder_form_finds_its_files_by_their_names(tmp_path: Path) -> None:
    sentinel(tmp_path / "sentinel.json")
    (tmp_path / "recording.jsonl.gz").touch()
    (tmp_path / "calls.jsonl").touch()
    check = load_check(write_check(tmp_path / "check.json"))
    assert (check.recording, check.calls) == (tmp_path / "recording.jsonl.gz", tmp_path / "calls.jsonl")
    assert [(codon, [one.id for one in of]) for codon, of in check.sentinels.items()] == [(EVERYTHING, ["it"])]


def test_what_the_folder_form_names_itself_stands_before_what_lies_beside_it(tmp_path: Path) -> None:
    sentinel(tmp_path / "sentinel.json")
    (tmp_path / "hank.json").write_text("{}")
    check = load_check(write_check(tmp_path / "check.json", sentinel="stock:sweep"))
    assert [one.id for of in check.sentinels.values() for one in of] == ["sweep"]


def test_the_one_file_form_takes_only_what_it_names(tmp_path: Path) -> None:
    sentinel(tmp_path / "sentinel.json")
    (tmp_path / "recording.jsonl").touch()
    check = load_check(write_check(tmp_path / "x.check.json"))
    assert (check.recording, check.sentinels) == (None, {})


def test_checks_are_found_below_folders_in_order_and_hidden_ones_are_left(tmp_path: Path) -> None:
    for name in ("b/check.json", "a/z.check.json", "a/y.check.json", ".venv/check.json", "node_modules/x.check.json"):
        write_check(tmp_path / name)
    (tmp_path / "a" / "check.json").write_text('{"id": "somebody-elses"}')
    found = find_checks([tmp_path, tmp_path / "b" / "check.json"])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["a/y.check.json", "a/z.check.json", "b/check.json"]


def test_a_check_with_a_slip_in_its_json_is_not_overlooked(tmp_path: Path) -> None:
    (tmp_path / "check.json").write_text('{"expect": {"fires": }')
    assert is_check(tmp_path / "check.json")
    with pytest.raises(ConfigError):
        load_check(tmp_path / "check.json")


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_no_check_at_all_is_a_usage_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError):
        find_checks([tmp_path / name])


def test_its_id_is_its_folder_or_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_id(Path("a/narrator/check.json")) == "a/narrator"
    assert check_id(Path("a/errors.check.json")) == "a/errors"
    assert check_id(tmp_path / "errors.check.json") == "errors"


async def test_what_it_cannot_be_held_against_is_told_as_its_fault(tmp_path: Path) -> None:
    sentinel(tmp_path / "it.json", model="anthropic/claude-haiku-4-5")
    write_journal(tmp_path / "r.jsonl", [event(1)])
    (tmp_path / "none.jsonl").write_text("nothing")
    for expect, keys, said in (
        ({}, {"sentinel": "it.json"}, "it has no recording"),
        ({}, {"recording": "r.jsonl"}, "it names nobody who watches"),
        (
            {"reports": {"it": [{"contains": "x"}]}},
            {"recording": "r.jsonl", "sentinel": "it.json"},
            "nobody answers for",
        ),
        ({}, {"recording": "r.jsonl", "sentinel": "it.json"}, "nobody answers for"),
        ({"fires": {"it": 1}}, {"recording": "none.jsonl", "sentinel": "it.json"}, "is no recording"),
        ({"fires": {"it": 1}}, {"recording": "r.jsonl", "sentinel": "it.json", "codon": "x"}, "has no codon 'x'"),
    ):
        result = await played(write_check(tmp_path / "x.check.json", expect, **keys))
        assert result.outcome == "faulty"
        assert said in result.told[0].message


HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "check-in-ci.md"


def test_the_checks_that_are_documented_have_no_fault() -> None:
    shown = re.findall(r"^```json\n(.*?)^```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(shown) == 4
    for text in shown:
        document, found = Document.parse(text, HOW_TO.name), Diagnostics()
        check = validate(Check, document, found)
        assert check is not None, list(found)
        check_rules(check, document, HOW_TO.parent, found)
        assert {fault.code for fault in found} <= {"file-unreadable"}
    assert all(f"`{test}`" in HOW_TO.read_text(encoding="utf-8") for test in (*TESTS, "schema", "equalsFile"))
