"""``check`` as a process: what passes, what fails and how it reads, what is written, what CI is told (spec cli)."""

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.support.checks import sentinel, write_check
from tests.support.cli import Cli, Done
from tests.support.recordings import at, event, write_journal

PROJECT = Path(__file__).parents[2]
RESULT_KEYS = ["check", "file", "outcome", "fires", "entries", "durationSeconds", "misses", "updated", "notes"]
MISS_KEYS = ["file", "line", "pointer", "message", "details"]


@pytest.fixture
def folder(cli: Cli) -> Path:
    """Two checks of one sentinel that repeats what it hears: one that passes, one that does not."""
    for name, expect in (
        ("good", {"fires": {"it": 3}, "reports": {"it": [{"contains": "2"}]}}),
        ("bad", {"fires": {"it": [{"eventCount": 1}, {"at": at(2)}]}, "reports": {"it": [{"contains": "x"}]}}),
    ):
        sentinel(cli.cwd / name / "sentinel.json")
        write_journal(cli.cwd / name / "recording.jsonl", [event(number, "info", at(number)) for number in (1, 2, 3)])
        write_check(cli.cwd / name / "check.json", expect, description=f"A {name} one.")
    return cli.cwd


BAD = """\
failed  bad  3 fires, 3 entries
  A bad one.
  bad/check.json:4: it: fires differ, 2 expected, 3 seen
    |   #1    2026-01-01T00:00:00.001Z  match         1 event   in imported
    |   #2    2026-01-01T00:00:00.002Z  match         1 event   in imported
    | + #3    2026-01-01T00:00:00.003Z  match         1 event   in imported
  bad/check.json:16: it: the report should contain "x"
    | ---
    | 1
    |
    | ---
    | 2
    |
    | ---
    | 3
"""


def test_every_check_among_the_fixtures_passes(cli: Cli, fixtures: Path) -> None:
    done = Cli(cli.home, fixtures)("check", "--json")
    assert (done.code, [line["misses"] for line in done.lines[:-1]]) == (0, [[] for _ in done.lines[:-1]]), done.err
    stock = {f"stock/{path.parent.name}" for path in (fixtures / "stock").glob("*/fixture.json")}
    assert {line["check"] for line in done.lines[:-1]} >= {"demo", "sentinel-sweep", *stock}


def test_what_is_missed_is_told_where_it_is_written(cli: Cli, folder: Path) -> None:
    done = cli("check")
    assert (done.code, done.err) == (1, "")
    assert done.out == f"{BAD}passed  good  3 fires, 3 entries\n2 checks: 1 passed, 1 failed\n"


def test_quietly_only_what_failed_is_told(cli: Cli, folder: Path) -> None:
    assert cli("check", "-q", "good").out == "1 check: 1 passed\n"
    assert cli("check", "-q").out == f"{BAD}2 checks: 1 passed, 1 failed\n"


def test_json_has_a_line_for_each_check_and_a_summary(cli: Cli, folder: Path) -> None:
    done = cli("check", "--json")
    bad, good, last = done.lines
    assert [list(line) for line in (bad, good)] == [RESULT_KEYS, RESULT_KEYS]
    assert [list(miss) for miss in bad["misses"]] == [MISS_KEYS, MISS_KEYS]
    assert (bad["misses"][0]["pointer"], bad["misses"][1]["line"]) == ("/expect/fires/it", 16)
    assert last == {"summary": {"checks": 2, "passed": 1, "failed": 1, "faulty": 0}}
    assert "1 failed" in done.err


def test_checks_are_chosen_by_their_ids(cli: Cli, folder: Path) -> None:
    assert [line["check"] for line in cli("check", "--json", "-k", "good and not bad").lines[:-1]] == ["good"]
    cli.refused("check", "-k", "neither", code="usage")
    cli.refused("check", "-k", "good and", code="usage")


@pytest.mark.parametrize(
    "arguments",
    ["nowhere", "--from latest", "--out x", "--from latest --out x -k y", "--run latest --update", "--run nothing"],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, folder: Path, arguments: str) -> None:
    done = cli("check", *arguments.split())
    assert (done.code, done.out) == (2, "")
    assert "error[" in done.err
    assert not (folder / "x").exists()


def test_a_faulty_check_is_told_as_validate_would_and_the_others_go_on(cli: Cli, folder: Path) -> None:
    write_check(folder / "odd.check.json", {"fire": {}}, sentinel="stock:narator")
    done = cli("check")
    assert done.code == 2
    assert "odd.check.json:3: unknown-key: unknown key 'fire'\n    hint: did you mean 'fires'?" in done.out
    assert done.out.endswith("3 checks: 1 passed, 1 failed, 1 faulty\n")


def test_update_makes_lists_right_and_a_second_one_changes_nothing(cli: Cli, folder: Path) -> None:
    check = json.loads((folder / "bad" / "check.json").read_text())
    check["expect"]["reports"]["it"] = [{"equalsFile": "it.md"}]
    write_check(folder / "bad" / "check.json", check["expect"])
    first = cli("check", "--update")
    assert (first.code, first.out.count("updated")) == (0, 2)
    written = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert cli("check").code == 0
    assert "updated" not in cli("check", "--update").out
    assert written == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_junit_is_written_beside_the_text(cli: Cli, folder: Path) -> None:
    assert cli("check", "--junit", "out.xml").code == 1
    (suite,) = ET.fromstring((folder / "out.xml").read_bytes())
    assert [(case.get("name"), [inner.tag for inner in case]) for case in suite] == [("bad", ["failure"]), ("good", [])]


@pytest.mark.parametrize("as_json", [False, True])
def test_github_is_told_by_its_commands_and_by_nothing_else(cli: Cli, folder: Path, as_json: bool) -> None:
    arguments = ["check", "--github", *(["--json"] if as_json else [])]
    done = cli(*arguments, env={"GITHUB_STEP_SUMMARY": str(folder / "page.md")})
    stop, *lines = (done.err if as_json else done.out).splitlines()
    resume = f"::{stop.removeprefix('::stop-commands::')}::"
    assert (lines.count(resume), done.code) == (1, 1)
    commands = lines[lines.index(resume) + 1 :]
    assert [line.partition(" ")[2].partition(",")[0] for line in commands] == ["file=bad/check.json"] * 2
    assert (folder / "page.md").read_text().startswith("### 2 checks: 1 passed, 1 failed\n")


def copy(looker: Cli, cli: Cli) -> Cli:
    """A home of one's own in which the demo has run."""
    shutil.copytree(looker.executions, cli.executions, symlinks=True)
    return cli


def test_a_run_becomes_a_check_that_passes_at_once(looker: Cli, cli: Cli) -> None:
    copy(looker, cli)
    done = cli("check", "--from", "latest", "--out", "made/demo")
    assert (done.code, done.err) == (0, "")
    assert "passed  made/demo  " in done.out
    made = {
        str(path.relative_to(cli.cwd / "made" / "demo")) for path in (cli.cwd / "made").rglob("*") if path.is_file()
    }
    assert made >= {"check.json", "recording.jsonl", "hank.json", "prompts/fix-the-app.md", "sentinels/narrator.md"}
    assert cli("check", "made").code == 0
    assert "updated" not in cli("check", "made", "--update").out
    cli.refused("check", "--from", "latest", "--out", "made/demo", code="usage")


def test_what_the_made_check_expects_is_what_the_run_did(looker: Cli, cli: Cli) -> None:
    copy(looker, cli)
    cli("check", "--from", "latest", "--out", "made")
    assert cli("check", "made", "--run", "latest").code == 0
    narrator = cli.cwd / "made" / "expected" / "narrator.md"
    assert (
        narrator.read_bytes() == next(cli.executions.glob("*/.hankweave/sentinels/outputs/narrator/*.md")).read_bytes()
    )
    narrator.write_text(narrator.read_text().replace("app.py", "nap.py"))
    for arguments in (["made"], ["made", "--run", "latest"]):
        done = cli("check", *arguments)
        assert done.code == 1
        assert "narrator: the report is not expected/narrator.md" in done.out


def test_a_run_is_a_gate_without_recording_or_sentinels(looker: Cli) -> None:
    expect = {"fires": {"error-streak": {"max": 1}}, "reports": {"narrator": [{"notContains": "rm -rf"}]}}
    write_check(looker.cwd / "gate.check.json", expect)
    assert looker("check", "gate.check.json", "--run", "latest").code == 0
    write_check(looker.cwd / "gate.check.json", {"fires": {"error-streak": 0, "nobody": 1}})
    done = looker("check", "gate.check.json", "--run", "latest")
    assert done.code == 1
    assert "error-streak: no fires are expected, 1 fire seen" in done.out
    assert "nobody: no such sentinel was loaded; there were cost-window, error-streak, narrator, tool-tally" in done.out


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r ]]> %0A\n::error::x\n##[error]y"


def hostile_check(cli: Cli) -> Any:
    sentinel(cli.cwd / "sentinel.json")
    write_journal(cli.cwd / "recording.jsonl", [event(1, "info", at(1), message=HOSTILE)])
    return write_check(
        cli.cwd / "check.json", {"reports": {"it": [{"equals": "x", "entry": 1}, {"contains": "y\x1b"}]}}
    )


@pytest.mark.parametrize("options", ["", "--json", "--github", "--junit out.xml"])
def test_event_text_does_no_harm_wherever_it_is_told(cli: Cli, options: str) -> None:
    hostile_check(cli)
    done: Done = cli("check", *options.split(), env={"GITHUB_STEP_SUMMARY": str(cli.cwd / "page.md")})
    assert done.code == 1
    told = [done.out, done.err, *(path.read_text() for path in cli.cwd.glob("*.md"))]
    if options.startswith("--junit"):
        told.append((cli.cwd / "out.xml").read_text())
        ET.fromstring(told[-1])
    for text in told:
        assert not any(control in text for control in ("\x1b", "\x07", "\x9b", "\r", "\u202e"))
        obeyed = [line for line in text.splitlines() if line.strip().startswith("::error::x")]
        assert obeyed == []


def test_validate_knows_a_check(cli: Cli, folder: Path) -> None:
    assert cli("validate", "good/check.json").out == "good/check.json: no faults\n"
    write_check(folder / "odd.check.json", {"fire": {}}, hank="none.json")
    done = cli("validate", "odd.check.json", "--json")
    assert (done.code, [fault["pointer"] for fault in done.json["diagnostics"]]) == (1, ["/expect/fire"])
    sentinel(folder / "check.json")
    assert cli("validate", "check.json").code == 0
