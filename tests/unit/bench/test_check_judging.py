"""Fires, errors and journals held against what is expected, and how a difference reads."""

import tempfile
from pathlib import Path

import pytest
from tests.support.checks import AT, failed, fired, held, played, sentinel, texts, write_check
from tests.support.recordings import at, event, write_journal

from hankwatch.bench.check.diff import SHOWN_LINES, file_diff, fires_diff, text_diff, visible
from hankwatch.bench.check.model import ExpectedFire
from hankwatch.bench.check.result import CheckResult
from hankwatch.core.errors import InfrastructureError


def told(result: CheckResult) -> list[str]:
    assert result.outcome in {"passed", "failed"}
    return [line for one in result.told for line in (one.message, *one.details)]


@pytest.mark.parametrize("wanted", [2, {"min": 2}, {"max": 2}, {"min": 1, "max": 3}, [{"cause": "quiet"}, {}]])
async def test_a_number_of_fires_that_is_expected_passes(wanted: object, tmp_path: Path) -> None:
    result = await held(tmp_path, {"fires": {"it": wanted}}, it=fired("quiet", "drain"))
    assert (result.outcome, result.fires) == ("passed", 2)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (1, "it: 1 fire is expected, 2 fires seen"),
        (0, "it: no fires are expected, 2 fires seen"),
        ({"min": 3}, "it: at least 3 fires expected, 2 fires seen"),
        ({"max": 1}, "it: at most 1 fire expected, 2 fires seen"),
        ({"min": 4, "max": 5}, "it: 4 to 5 fires expected, 2 fires seen"),
    ],
)
async def test_another_number_is_told_with_what_fired(wanted: object, said: str, tmp_path: Path) -> None:
    assert told(await held(tmp_path, {"fires": {"it": wanted}}, it=fired("quiet", "drain"))) == [
        said,
        f"| + #1    {AT}  quiet         1 event   in build",
        f"| + #2    {AT}  drain         2 events  in build",
    ]


async def test_a_list_of_fires_is_compared_only_in_what_it_says(tmp_path: Path) -> None:
    every = [{"cause": "quiet", "at": AT, "eventCount": 1, "codon": "build"}, {"eventCount": 2}]
    assert (await held(tmp_path, {"fires": {"it": every}}, it=fired("quiet", "drain"))).outcome == "passed"
    for key, value in (("cause", "full"), ("at", AT.replace("00:00", "00:01")), ("eventCount", 7), ("codon", "x")):
        result = await held(tmp_path, {"fires": {"it": [{key: value}, {}]}}, it=fired("quiet", "drain"))
        assert result.outcome == "failed"


async def test_lists_that_differ_are_shown_side_by_side(tmp_path: Path) -> None:
    wanted = [{"cause": "quiet"}, {"cause": "window"}, {"cause": "drain"}]
    assert told(await held(tmp_path, {"fires": {"it": wanted}}, it=fired("quiet", "full", "full", "drain"))) == [
        "it: fires differ, 3 expected, 4 seen",
        f"|   #1    {AT}  quiet         1 event   in build",
        "| - #2    any time                  window",
        f"| + #2    {AT}  full          2 events  in build",
        f"| + #3    {AT}  full          3 events  in build",
        f"|   #4    {AT}  drain         4 events  in build",
    ]


def test_what_is_alike_around_a_difference_is_counted() -> None:
    seen = fired(*["quiet"] * 20, "full", *["quiet"] * 20).fires
    wanted = [ExpectedFire(cause="quiet")] * 41
    lines = fires_diff(wanted, seen)
    assert lines[0] == "| … 18 as expected"
    assert [line for line in lines if "full" in line] == [f"| + #21   {AT}  full         21 events  in build"]
    assert len(lines) <= 8


def test_a_difference_far_behind_is_still_shown() -> None:
    seen = fired(*["quiet"] * 3_000, "full").fires
    assert any("full" in line for line in fires_diff([ExpectedFire(cause="quiet")] * 3_001, seen))


async def test_errors_are_not_expected_unless_they_are_named(tmp_path: Path) -> None:
    assert told(await held(tmp_path, {}, it=failed("no such call\n-a\n+b"))) == [
        "it: no errors are expected, 1 error seen",
        "| ! llm-call-failed: no such call",
        "|   -a",
        "|   +b",
    ]
    for wanted in (1, {"max": 1}, ["llm-call-failed"]):
        assert (await held(tmp_path, {"errors": {"it": wanted}}, it=failed("x"))).outcome == "passed"
    assert told(await held(tmp_path, {"errors": {"it": ["abandoned"]}}, it=failed("x")))[0] == (
        "it: the errors abandoned are expected, 1 error seen"
    )


async def test_a_sentinel_that_never_watched_is_told_once(tmp_path: Path) -> None:
    expect = {"fires": {"it": 1}, "reports": {"it": [{"contains": "x"}, {"equalsFile": "x"}]}}
    assert told(await held(tmp_path, expect, other=texts("x"))) == ["it: no such sentinel was loaded; there were other"]
    assert told(await held(tmp_path, expect)) == ["it: no such sentinel was loaded; there was none"]


async def test_the_journal_of_a_replay_is_the_same_every_time(tmp_path: Path) -> None:
    sentinel(tmp_path / "sentinel.json")
    write_journal(tmp_path / "recording.jsonl", [event(number, "info", at(number)) for number in (1, 2)])
    path = write_check(tmp_path / "check.json", {"journal": "journal.jsonl"})
    assert (await played(path, rewrite=True)).updated == (tmp_path / "journal.jsonl",)
    assert (await played(path)).outcome == "passed"
    golden = (tmp_path / "journal.jsonl").read_text()
    (tmp_path / "journal.jsonl").write_text(golden.replace('"message":"2"', '"message":"3"'))
    result = await played(path)
    assert told(result)[0] == "the journal is not journal.jsonl"
    assert [line for line in told(result) if line[2:3] in {"-", "+"}] == ["| - data.message: 3", "| + data.message: 2"]


async def test_lines_that_could_not_be_read_are_told_whatever_the_outcome(tmp_path: Path) -> None:
    sentinel(tmp_path / "sentinel.json")
    path = write_journal(tmp_path / "recording.jsonl", [event(1)])
    path.write_text(f"{path.read_text()}no json\n")
    (tmp_path / "calls.jsonl").write_text("{}\n")
    result = await played(write_check(tmp_path / "check.json", {"fires": {"it": 1}}))
    assert (result.outcome, result.notes) == (
        "passed",
        ("1 line(s) of recording.jsonl became no event", "1 line(s) of calls.jsonl are no model call"),
    )


async def test_without_room_for_a_replay_nothing_is_said_of_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentinel(tmp_path / "sentinel.json")
    write_journal(tmp_path / "recording.jsonl", [event(1)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(InfrastructureError, match="no room for a temporary folder"):
        await played(write_check(tmp_path / "check.json"))


def test_a_change_inside_a_long_line_is_shown() -> None:
    before = "x" * 5_000 + "a" + "y" * 5_000
    (minus, plus) = (line for line in text_diff(before, before.replace("a", "b")) if line[2] in "-+")
    assert ("a" in minus, "b" in plus) == (True, True)


def test_lines_of_json_are_compared_value_by_value() -> None:
    before = b'{"text":"a\\nb","n":[1]}\n{"text":"c"}\n'
    after = b'{"text":"a\\nB","n":[1]}\n{"text":"c"}\n'
    assert file_diff(before, after) == ("|   text:", "|     a", "| -   b", "| +   B", "|   n: [1]", "|   ---")
    assert file_diff(b'{"a":1}', b'{"a": 1}') == ('| - {"a":1}', '| + {"a": 1}')
    assert file_diff(b"{}\nno json", b"{}\nno jason")[-2:] == ("| - no json", "| + no jason")


def test_a_long_difference_is_cut_and_says_so() -> None:
    lines = text_diff("", "\n".join(map(str, range(1_000))))
    assert len(lines) == SHOWN_LINES + 1
    assert lines[-1] == "| … 961 more lines"


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert visible("a\x1b[2J\x9b\u202e\r\t\ud800é") == "a\\x1b[2J\\x9b\\u{202e}\\x0d\\t\\u{d800}é"
    assert text_diff("a\n", "a\r\n") == ("| - a", "| + a\\x0d", "|")
