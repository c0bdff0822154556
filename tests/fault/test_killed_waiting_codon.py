"""kill -9 of a run whose codon waits for its watches, then --resume: it goes on waiting (design "How it runs" 7)."""

import json
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon
from tests.support.runs import stand_in, until, write_hank


@pytest.mark.slow
def test_what_fires_while_nobody_runs_is_the_turn_of_a_codon_that_was_killed_waiting(tmp_path: Path) -> None:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    cli, root = Cli(tmp_path / "home", tmp_path / "work"), tmp_path / "execution"
    agent = stand_in(
        tmp_path / "agent",
        ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}],
        ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}],
        ["until_eof"],
    )
    env = {name: value for name, value in agent.environ.items() if name not in {"HOME", "LANG"}}
    hank, journal = write_hank(cli.cwd / "hank", codon(waitForWatches=True)), root / ".hankweave/events/events.jsonl"
    assert cli("run", hank, "-e", root, "--headless", env=env).code == 0  # nothing to wait for yet
    condition = ("--condition", "done", "--document", root / "done", "--id", "deploy", "--session", "one")
    assert cli("watch", "create", *condition, "--home", root, "--interval", "5s").code == 0

    with cli.start("run", hank, "-e", root, "--start-new", "--headless", env=env) as process:
        until(lambda: journal.exists() and "waits-for-watches" in journal.read_text())
        process.kill()
    (root / "done").touch()
    assert cli("watch", "check", "deploy").code == 0
    assert cli("run", hank, "-e", root, "--resume", "--headless", env=env).code == 0

    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [call["argv"].count("--resume") for call in agent.calls()] == [0, 0, 1]
    assert sum(event["data"].get("code") == "wake" for event in events) == 1
    assert [event["data"]["success"] for event in events if event["type"] == "codon.completed"] == [True, True]
