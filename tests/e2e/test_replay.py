"""``replay`` as a process: its modes, its refusals, its end by a signal (spec hank 5, cli)."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.recordings import event, write_journal
from tests.support.replays import journal, written
from tests.support.runs import until

from hankwatch.testing import make_event

pytestmark = pytest.mark.slow


@pytest.fixture
def demo(looker: Cli) -> Path:
    """The execution directory of a demo run."""
    return max(looker.executions.iterdir(), key=lambda path: path.name)


def codes(root: Path) -> list[str]:
    return [event.data["code"] for event in journal(root) if event.type == "info" and "code" in event.data]


def test_a_run_is_replayed_without_sentinels_and_both_terminal_and_journal_say_so(cli: Cli, demo: Path) -> None:
    done = cli("replay", demo, "--out", "out")
    assert (done.code, done.err) == (0, "")
    assert "Sentinels are skipped" in done.out
    assert "Journal: out/.hankweave/events/events.jsonl" in done.out
    assert codes(cli.cwd / "out") == ["replay-begun", "replay-ended"]


def test_the_recorded_calls_give_the_recorded_fires(cli: Cli, demo: Path) -> None:
    done = cli("replay", demo, "--sentinels", "cassette", "--deterministic", "--out", "one", "--json")
    told = done.json
    assert done.code == 0
    assert told["fires"] == {"narrator": 7, "error-streak": 1, "tool-tally": 2, "cost-window": 3}
    assert told["errors"] == []
    assert all(Path(one["report"]).is_file() or (cli.cwd / one["report"]).is_file() for one in told["sentinels"])
    cli("replay", demo, "--sentinels", "cassette", "--deterministic", "--out", "two")
    one, two = written(cli.cwd / "one"), written(cli.cwd / "two")
    for files in (one, two):
        files.pop(".hankweave/execution-meta.json")  # says when it was made
    assert one == two


def test_calls_made_live_are_the_next_call_log(cli: Cli, demo: Path) -> None:
    assert cli("replay", demo, "--sentinels", "live", "--deterministic", "--out", "live").code == 0
    log = Path("live", ".hankweave", "sentinels", "calls.jsonl")
    assert len((cli.cwd / log).read_bytes().splitlines()) == 13
    done = cli("replay", demo, "--sentinels", "cassette", "--calls", log, "--deterministic", "--out", "again", "--json")
    assert (done.json["errors"], sum(done.json["fires"].values())) == ([], 13)


def test_without_a_directory_it_lies_beside_the_executions_and_is_no_run(looker: Cli, demo: Path) -> None:
    done = looker("replay", "latest", "--json")
    root = Path(done.json["execution"])
    assert root.parent == looker.executions / "replays"
    assert json.loads((root / ".hankweave" / "execution-meta.json").read_text())["replayOf"].startswith(str(demo))
    assert looker("replay", "latest", "--json").json["leftOut"] == done.json["leftOut"]
    shutil.rmtree(looker.executions / "replays")


def test_an_agents_stream_stands_for_the_codon_that_is_named(cli: Cli, fixtures: Path) -> None:
    stream = fixtures / "agent-streams" / "claude-error-retry.jsonl"
    done = cli("replay", stream, "--sentinels", "live", "--hank", fixtures / "demo", "--out", "out", "--json")
    assert done.json["codons"] == ["fix-the-app"]
    assert done.json["fires"]["error-streak"] == 1


def test_a_call_log_that_is_not_there_is_named(cli: Cli, fixtures: Path) -> None:
    journal = write_journal(cli.cwd / "j.jsonl", [event(1)])
    options = ("--sentinels", "cassette", "--hank", fixtures / "demo")
    refused = cli.refused("replay", journal, *options, code="usage")
    assert f"there is no call log {cli.cwd / 'calls.jsonl'}" in refused.err
    refused = cli.refused("replay", journal, *options, "--calls", "other.jsonl", code="usage")
    assert "there is no call log other.jsonl" in refused.err
    assert "--sentinels live" in refused.err


def test_whose_sentinels_has_to_be_known(cli: Cli, fixtures: Path) -> None:
    journal = write_journal(cli.cwd / "j.jsonl", [event(1)])
    refused = cli.refused("replay", journal, "--sentinels", "live", code="usage")
    assert "--hank PATH" in refused.err
    stream = fixtures / "agent-streams" / "codex-success.jsonl"
    tour = fixtures / "grand-tour"
    refused = cli.refused("replay", stream, "--sentinels", "live", "--hank", tour, code="usage")
    assert "--codon names one of survey, draft" in refused.err
    refused = cli.refused("replay", journal, "--sentinels", "live", "--hank", "nowhere", code="usage")
    assert "the hank nowhere does not exist" in refused.err


def test_codons_that_the_hank_does_not_have_are_told(cli: Cli, fixtures: Path) -> None:
    journal = write_journal(cli.cwd / "j.jsonl", [event(1, "codon.started", codonId="other")])
    done = cli("replay", journal, "--sentinels", "live", "--hank", fixtures / "demo", "--out", "out")
    assert "no sentinel was attached: codons of the recording (other)" in done.out


def test_what_exists_is_refused(cli: Cli) -> None:
    journal = write_journal(cli.cwd / "j.jsonl", [event(1)])
    assert "exists already" in cli.refused("replay", journal, "--out", ".", code="usage").err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_whole_journal_that_says_so(cli: Cli, number: signal.Signals) -> None:
    path = write_journal(cli.cwd / "slow.jsonl", [make_event("info", t, message="x").envelope() for t in (0, 90_000)])
    with cli.start("replay", path, "--speed", "real", "--out", "out") as process:
        begun = cli.cwd / "out" / ".hankweave" / "events" / "events.jsonl"
        until(lambda: begun.exists() and begun.read_bytes().count(b"\n") >= 2)
        process.send_signal(number)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Interrupted" in err
    assert codes(cli.cwd / "out") == ["replay-begun", "replay-interrupted"]
