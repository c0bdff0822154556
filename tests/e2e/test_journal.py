"""``journal stats``, ``journal import``, ``tail`` and ``sentinel rebuild`` on files at rest (spec cli)."""

import gzip
import json
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.recordings import at, event, write_journal


def journal_of(cli: Cli) -> Path:
    (root,) = cli.executions.iterdir()
    return root / ".hankweave" / "events" / "events.jsonl"


def test_stats_of_a_whole_journal_exit_0(looker: Cli) -> None:
    done = looker("journal", "stats", "--json")
    lines = journal_of(looker).read_text().splitlines()
    assert (done.code, done.json["ok"], done.json["events"]) == (0, True, len(lines))
    assert sum(kind["sizeBytes"] for kind in done.json["types"].values()) == done.json["sizeBytes"]
    assert "integrity: ok" in looker("journal", "stats").out


def test_stats_name_everything_that_is_not_right_and_exit_1(cli: Cli) -> None:
    path = write_journal(cli.cwd / "j", [event(2, "info", at(5)), event(1, "info", at(3)), event(2, "info", at(6))])
    path.write_bytes(path.read_bytes() + b"nonsense\n" + b'{"id":"torn')
    done = cli("journal", "stats", path, "--json")
    assert done.code == 1
    problems = {name: done.json[name] for name in ("badLines", "tornTailBytes", "repeatedIds", "backwardStamps")}
    assert problems == {"badLines": 1, "tornTailBytes": 11, "repeatedIds": 1, "backwardStamps": 1}


def test_an_import_can_be_tried_tailed_and_counted(cli: Cli, fixtures: Path) -> None:
    source = fixtures / "agent-streams" / "codex-success.jsonl"
    done = cli("journal", "import", source, "--out", "events.jsonl", "--codon", "build", "--json")
    assert (done.code, done.json["program"]) == (0, "codex")
    tailed = cli("tail", "events.jsonl", "--json")
    assert tailed.code == 0
    assert len(tailed.lines) == done.json["events"]
    assert cli("journal", "stats", "events.jsonl").code == 0


def test_an_import_overwrites_nothing_and_leaves_nothing_half(cli: Cli, fixtures: Path) -> None:
    source = fixtures / "agent-streams" / "codex-success.jsonl"
    (cli.cwd / "out").write_text("mine")
    cli.refused("journal", "import", source, "--out", "out", code="usage")
    assert (cli.cwd / "out").read_text() == "mine"
    (cli.cwd / "torn.gz").write_bytes(gzip.compress(source.read_bytes())[:-40])
    cli.refused("journal", "import", "torn.gz", "--out", "new", code="usage")
    assert sorted(path.name for path in cli.cwd.iterdir()) == ["out", "torn.gz"]


def test_an_import_is_redacted(cli: Cli) -> None:
    write_journal(cli.cwd / "j", [event(1, message="the key is hunter2hunter2")])
    assert cli("journal", "import", "j", "--out", "out", env={"MY_API_KEY": "hunter2hunter2"}).code == 0
    assert "hunter2" not in (cli.cwd / "out").read_text()


def test_tail_shows_only_what_is_asked_for(looker: Cli) -> None:
    done = looker("tail", "--json", "--type", "codon.started", "--type", "codon.completed")
    assert [one["type"] for one in done.lines] == ["codon.started", "codon.completed"]
    behind = looker("tail", "--json", "--since", str(done.lines[0]["cursor"]), "--type", "codon.started")
    assert (behind.code, behind.out) == (0, "")


def test_tail_refuses_types_and_cursors_that_are_none(looker: Cli) -> None:
    assert "nonsense" in looker.refused("tail", "--type", "nonsense", code="usage").err
    looker.refused("tail", "--since", "7", code="usage")


def test_tail_and_stats_read_packed_journals(cli: Cli) -> None:
    lines = "".join(json.dumps(event(number, "info", at(number))) + "\n" for number in (1, 2))
    (cli.cwd / "j.gz").write_bytes(gzip.compress(lines.encode()))
    assert [one["id"] for one in cli("tail", "j.gz", "--json").lines] == ["e001", "e002"]
    assert cli("journal", "stats", "j.gz", "--json").json["events"] == 2
    (cli.cwd / "torn.gz").write_bytes(gzip.compress(lines.encode())[:-20])
    torn = cli("tail", "torn.gz", "--json")  # what can be read is shown
    assert (torn.code, torn.lines[0]["id"]) == (2, "e001")
    assert "error[usage]: torn.gz cannot be read" in torn.err


def test_reports_are_written_anew_from_the_journal(cli: Cli) -> None:
    root = cli.demo()
    outputs = root / ".hankweave" / "sentinels" / "outputs"
    before = {path: path.read_bytes() for path in outputs.glob("*/*")}
    (outputs / "narrator" / "narrator.md").unlink()
    (outputs / "tool-tally" / "tool-tally.md").write_text("damaged")
    assert cli("sentinel", "rebuild", "latest", "narrator").code == 0
    assert (outputs / "tool-tally" / "tool-tally.md").read_text() == "damaged"
    done = cli("sentinel", "rebuild", "latest", "--json")
    assert done.code == 0
    assert {line["error"] for line in done.lines} == {None}
    assert {path: path.read_bytes() for path in outputs.glob("*/*")} == before


@pytest.mark.parametrize("arguments", [("latest", "nobody"), ("nothing",), (".",)], ids=str)
def test_a_rebuild_of_nothing_is_refused(looker: Cli, arguments: tuple[str, ...]) -> None:
    done = looker("sentinel", "rebuild", *arguments)
    assert done.code == 2
    assert "error[" in done.err
