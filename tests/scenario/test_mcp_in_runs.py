"""``mcp: true``: an agent arms through our MCP server, ends its turn, and is woken (spec watches 5, hank 1)."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, run_here, write_hank

from hankwatch.app import open_run
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions

AGENT = f"exec:{shlex.join([sys.executable, '-I', str(Path(__file__).parents[1] / 'support' / 'mcp_agent.py')])}"
MONITOR = {
    "condition": "the deploy has a status",
    "verifier": {"type": "document", "path": "status.json", "pointer": "/state"},
    "note": "Read the status and go on.",
}


class Here:
    """A hank of one codon whose agent plays a score of tool calls, one list for each turn."""

    def __init__(self, folder: Path, *turns: list[Any], **fields: Any) -> None:
        (folder / "home").mkdir()
        self.score = folder / "score.json"
        self.score.write_text(json.dumps(turns), encoding="utf-8")
        env = {"MCP_SCORE": str(self.score)}
        one = codon("one", agent=AGENT, env=env, mcp=True, **fields)
        self.environ = environment({"HOME": str(folder / "home")})
        self.hank = write_hank(folder / "hank", one)
        self.root = folder / "run"

    async def run(self) -> Ran:
        return await run_here(self.hank, self.root, environ=self.environ)

    async def run_and(self, does: Callable[[], None], *, when: str) -> Ran:
        """A run; something is done once an ``info`` of that code is told."""
        told = anyio.Event()

        def listen(event: Event) -> None:
            if event.data.get("code") == when:
                told.set()

        async with open_run(RunOptions(self.hank, execution=self.root), environ=self.environ) as live:
            live.stream.subscribe(listen, name="test")
            async with anyio.create_task_group() as tasks:

                async def act() -> None:
                    await told.wait()
                    does()

                tasks.start_soon(act)
                result = await live.carry_out()
        return Ran(self.root, result)


def answers(ran: Ran) -> list[dict[str, Any]]:
    """What the tools have answered."""
    return [json.loads(event.data["result"]) for event in ran.of("tool.result")]


def prompts(ran: Ran) -> list[str]:
    """What each turn was told."""
    spoken = [event.data for event in ran.of("assistant.action")]
    return [data["content"] for data in spoken if data["action"] == "message"]


async def test_an_agent_arms_a_monitor_ends_its_turn_and_is_woken_with_what_was_seen(tmp_path: Path) -> None:
    here = Here(tmp_path, [["create_monitor", MONITOR]], waitForWatches=True, checkpointedFiles=["status.json"])
    status = here.root / "agentRoot" / "status.json"

    ran = await here.run_and(lambda: _write(status, {"state": "deployed"}), when="waits-for-watches")

    (armed,) = answers(ran)
    assert (armed["watch"]["kind"], armed["watch"]["state"], armed["watch"]["session"]) == ("monitor", "active", "one")
    assert armed["watch"]["depth"] == 0
    _, woken = prompts(ran)
    order = ["[monitor event]", "[Autonomous wake]", "Read the status and go on.", "deployed"]
    assert sorted(order, key=woken.index) == order
    assert ran.completed()["success"] is True
    assert [event.data["watchId"] for event in ran.of("watch.met")] == [armed["watch"]["id"]]


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


async def test_a_woken_turn_may_propose_and_read_its_own_run_and_steer_nobody_elses(tmp_path: Path) -> None:
    first = [["create_monitor", MONITOR]]
    command = {"condition": "make says so", "verifier": {"type": "command", "command": "make check"}}
    elsewhere = {"condition": "mine", "verifier": {"type": "time", "after_s": 60}, "session": "two"}
    absolute = {"condition": "mine", "verifier": {"type": "time", "at": "2999-01-01T00:00:00Z"}}
    late = {"condition": "mine", "verifier": {"type": "time", "after_s": 60}, "deadline": "2999-01-01T00:00:00Z"}
    second = [
        ["create_watch", command],
        ["create_watch", elsewhere],
        ["create_watch", absolute],
        ["create_watch", late],
        ["read_events", {"type": ["watch.met"]}],
        ["list_runs", {}],
    ]
    here = Here(tmp_path, first, second, waitForWatches=True, checkpointedFiles=["status.json"])
    status = here.root / "agentRoot" / "status.json"

    ran = await here.run_and(lambda: _write(status, {"state": "up"}), when="waits-for-watches")

    _, proposed, *refused, events, runs = answers(ran)
    assert (proposed["watch"]["state"], proposed["watch"]["depth"]) == ("proposed", 1)
    assert [answer["error"]["code"] for answer in refused] == ["watch-invalid"] * 3
    assert [event["type"] for event in events["events"]] == ["watch.met"]
    assert [run["execution"] for run in runs["runs"]] == [here.root.name]


async def test_agents_are_told_that_watches_are_switched_off(tmp_path: Path) -> None:
    here = Here(tmp_path, [["create_monitor", MONITOR], ["list_watches", {}], ["get_run", {}]])
    here.environ["HANKWATCH_WATCHES_ENABLED"] = "false"

    refused, listed, run = answers(await here.run())

    assert refused["error"]["code"] == listed["error"]["code"] == "forbidden"
    assert "watches.enabled" in refused["error"]["message"]
    assert run["run"]["outcome"] == "running"
    assert list((tmp_path / "home").rglob("watches.db")) == []


async def test_a_program_that_takes_no_server_runs_without_one_and_says_so(tmp_path: Path) -> None:
    prints = '#!/bin/sh\necho \'{"type":"session","id":"s"}\'\n'
    pi = tmp_path / "pi"
    pi.write_text(prints)
    pi.chmod(0o755)
    hank = write_hank(tmp_path / "hank", codon("one", agent={"name": "pi", "command": [str(pi)]}, mcp=True))

    ran = await run_here(hank, tmp_path / "run")

    (told,) = [event.data for event in ran.of("info") if event.data.get("code") == "no-mcp"]
    assert "pi" in told["message"]
