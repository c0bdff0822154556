"""Commands beside a run of another process: following it, listing it, being refused (spec cli)."""

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.live import LiveRun, live_run


@pytest.fixture
def live(cli: Cli) -> Iterator[LiveRun]:
    with live_run(cli) as run:
        yield run


def until(process: "subprocess.Popen[str]", type_name: str) -> list[dict[str, Any]]:
    """Lines of ``tail --json`` up to the first of a type."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(json.loads(line))
        if seen[-1]["type"] == type_name:
            return seen
    pytest.fail(f"no {type_name} among {[one['type'] for one in seen]}")


def test_tail_follows_a_live_run_to_its_end(cli: Cli, live: LiveRun) -> None:
    with cli.start("tail", "execution", "--json") as tail:
        before = until(tail, "codon.started")
        live.say({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "hello"}]}})
        (action,) = until(tail, "assistant.action")
        assert action["data"]["content"] == "hello"
        live.let_end()
        out, err = tail.communicate(timeout=15)
    assert (tail.returncode, err) == (0, "")
    shown = [*before, action, *map(json.loads, out.splitlines())]
    assert [one["id"] for one in shown] == [json.loads(line)["id"] for line in live.journal.read_text().splitlines()]
    assert live.process.wait(timeout=15) == 0


def test_tail_ends_with_1_when_the_run_dies_without_an_end(cli: Cli, live: LiveRun) -> None:
    with cli.start("tail", "execution", "--json") as tail:
        until(tail, "codon.started")
        live.process.kill()
        tail.communicate(timeout=15)
    assert tail.returncode == 1
    assert cli("tail", "execution", "--type", "codon.completed").code == 1


def test_an_interrupted_tail_exits_130_and_leaves_the_run_alone(cli: Cli, live: LiveRun) -> None:
    with cli.start("tail", "execution", "--json") as tail:
        until(tail, "codon.started")
        tail.send_signal(signal.SIGINT)
        _, err = tail.communicate(timeout=15)
    assert tail.returncode == 130
    assert "Traceback" not in err
    assert live.process.poll() is None


def test_a_live_run_keeps_its_reports_and_its_directory(cli: Cli, live: LiveRun) -> None:
    for arguments in (("sentinel", "rebuild", "execution"), ("run", "--execution", "execution", "--start-new")):
        done = cli.refused(*arguments, code="execution-locked", exit_code=3)
        assert f"process {live.process.pid}" in done.err


def test_an_interrupted_run_exits_130_and_says_how_it_ended(cli: Cli, live: LiveRun) -> None:
    live.process.send_signal(signal.SIGINT)
    assert live.process.wait(timeout=15) == 130
    assert cli("tail", "execution", "--type", "codon.completed", "--json").lines[0]["data"]["success"] is False
