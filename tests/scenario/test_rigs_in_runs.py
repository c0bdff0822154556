"""A codon's rig in its run: seen by its sentinels, set up once, its failure the codon's (spec hank 2)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, sentinel
from tests.support.laws import moved_to
from tests.support.runs import Ran, run_here, stand_in, write_hank

from hankwatch.app import open_run
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.testing import ScriptedModel

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
GOOD = [INIT, ["line", RESULT], ["until_eof"]]
OVERLOADED = [INIT, ["line", {**RESULT, "is_error": True, "result": "API Error: 529 overloaded"}], ["until_eof"]]
RETRY: dict[str, Any] = {"onFailure": "retry", "retryConfig": {"maxAttempts": 2, "delayMs": 0}}


def command(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "command", "command": {"run": text}, **fields}


def watched(*rig: dict[str, Any], **fields: Any) -> dict[str, Any]:
    trigger = {"type": "event", "on": ["rig.output", "rig.setup.completed", "rig.setup.failed"]}
    observer = sentinel(trigger=trigger, userPromptText="{{ it.events }}")
    return codon(rigSetup=list(rig), sentinels=[{"sentinelConfig": observer}], **fields)


async def play(tmp_path: Path, *calls: list[Any], codon: dict[str, Any]) -> Ran:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    path = write_hank(tmp_path / "hank", codon, files={"kit.txt": "the kit"})
    environ = {**agent.environ, "SECRET_NUMBER": "0123456789"}
    return await run_here(path, tmp_path / "run", environ=environ, model=ScriptedModel("Seen."))


async def test_the_rig_is_set_up_before_the_agent_and_its_sentinels_see_it(tmp_path: Path) -> None:
    copy = {"type": "copy", "copy": {"from": "kit.txt", "to": "kit.txt"}}
    run = command('test "$SECRET_NUMBER" = 0123456789 && echo "$GREETING" && test -s kit.txt')
    ran = await play(tmp_path, GOOD, codon=watched(copy, run, env={"GREETING": "hello"}))
    assert ran.completed()["success"] is True
    assert (ran.root / "agentRoot" / "kit.txt").read_text() == "the kit"
    wanted = ("sentinel.loaded", "rig.output", "rig.setup.completed", "codon.started")
    assert [event.type for event in ran.of(*wanted)] == list(wanted)
    assert len(ran.of("sentinel.output")) == 2
    order = [moved_to(event) or event.type for event in ran.events]
    assert order.index("starting") < order.index("rig.setup.completed") < order.index("initializing")


async def test_a_failed_rig_fails_its_codon_before_the_agent_starts(tmp_path: Path) -> None:
    ran = await play(tmp_path, GOOD, codon=watched(command("echo broken >&2; exit 3")))
    completed = ran.completed()
    assert completed["success"] is False
    assert "broken" in completed["failureReason"]["message"]
    assert ran.of("rig.setup.failed")[0].data["exitCode"] == 3
    assert [event.data["fatal"] for event in ran.of("error")] == [True]
    assert ran.of("codon.started") == []


async def test_a_failed_rig_is_set_up_again_by_the_next_attempt(tmp_path: Path) -> None:
    once = command("test -e tried || { touch tried; exit 1; }")
    ran = await play(tmp_path, GOOD, codon=watched(once, **RETRY))
    assert [event.data["success"] for event in ran.of("codon.completed")] == [False, True]
    assert len(ran.of("rig.setup.failed")) == len(ran.of("rig.setup.completed")) == 1


async def test_a_rig_that_was_set_up_is_not_set_up_again(tmp_path: Path) -> None:
    ran = await play(tmp_path, OVERLOADED, GOOD, codon=watched(command("echo once >> log"), **RETRY))
    assert [event.data["success"] for event in ran.of("codon.completed")] == [False, True]
    assert (ran.root / "agentRoot" / "log").read_text() == "once\n"
    assert len(ran.of("rig.setup.completed")) == 1


@pytest.mark.parametrize("ask", ["stop", "skip"])
async def test_a_request_ends_the_rig_and_the_codon(tmp_path: Path, ask: str) -> None:
    path = write_hank(tmp_path / "hank", codon(rigSetup=[command("echo begun; sleep 600")]))
    async with open_run(RunOptions(path, execution=tmp_path / "run")) as live:

        def at_the_rig(event: Event) -> None:
            if event.type == "rig.output":
                if ask == "stop":
                    live.stop()
                else:
                    live.control.skip()

        live.stream.subscribe(at_the_rig, name="test")
        result = await live.carry_out()
    ran = Ran(tmp_path / "run", result)
    assert [codon.status for codon in result.record.codons] == ["failed" if ask == "stop" else "skipped"]
    assert len(ran.of("codon.completed")) == 1
