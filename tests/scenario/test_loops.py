"""Loops: codons run again and again, each iteration under ids and sentinels of its own (reference 3.7)."""

from pathlib import Path
from typing import Any

from tests.support.hanks import codon, loop, sentinel
from tests.support.laws import transition
from tests.support.runs import Ran, Standin, run_here, stand_in, write_hank

from hankwatch.testing import ScriptedModel

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
SPOKE = {"id": "m", "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 10, "output_tokens": 5}}
GOOD = [INIT, ["line", {"type": "assistant", "message": SPOKE}], ["line", RESULT], ["until_eof"]]
FULL = [INIT, ["line", {**RESULT, "is_error": True, "result": "Prompt is too long"}], ["until_eof"]]
UNTIL_FULL = {"terminateOn": {"type": "contextExceeded"}}


async def play(tmp_path: Path, *calls: list[Any], items: tuple[dict[str, Any], ...]) -> tuple[Ran, Standin]:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    path = write_hank(tmp_path / "hank", *items)
    ran = await run_here(path, tmp_path / "run", environ=agent.environ, model=ScriptedModel("Seen."))
    return ran, agent


async def test_a_counted_loop_runs_as_often_as_it_says(tmp_path: Path) -> None:
    observer = sentinel(trigger={"type": "event", "on": ["loop.iteration.completed"]}, userPromptText="{{ it.events }}")
    items = (loop(codon("b"), codon("c", sentinels=[{"sentinelConfig": observer}])), codon("z"))
    ran, _ = await play(tmp_path, GOOD, items=items)
    completed = [event.data for event in ran.of("codon.completed")]
    assert [data["codonId"] for data in completed] == ["b#0", "c#0", "b#1", "c#1", "z"]
    assert [data["baseCodonId"] for data in completed] == ["b", "c", "b", "c", "z"]
    first, last = [event.data for event in ran.of("loop.iteration.completed")]
    assert (first["iteration"], first["isFinal"], first["costUsd"], first["tokensUsed"]) == (0, False, 0.5, 30)
    assert "terminationReason" not in first
    assert (last["iteration"], last["isFinal"], last["terminationReason"]) == (1, True, "iteration_limit")
    assert [event.data["codonId"] for event in ran.of("sentinel.output")] == ["c#0", "c#1"]
    started = [event.data["transition"]["data"] for event in ran.events if transition(event) == "CodonStarted"]
    assert started[1]["loopContext"] == {"loopId": "again", "iteration": 0, "codonIndexInLoop": 1}
    assert "loopContext" not in started[-1]
    logs = {path.name for path in (ran.root / ".hankweave" / "runs").glob("*/*.log")}
    assert {"b-0-1-claude.log", "c-1-1-claude.log"} <= logs


async def test_what_codons_and_loops_are_done_with_is_archived(tmp_path: Path) -> None:
    rig = [{"type": "command", "command": {"run": "echo $$ > made; touch kept last"}}]
    inner = codon("b", rigSetup=rig, archiveOnSuccess=["made"])
    ran, _ = await play(tmp_path, GOOD, items=(loop(inner, archiveOnSuccess=["last"]),))
    archived = [(event.data["codonId"], event.data["archivedPaths"]) for event in ran.of("archive.completed")]
    assert archived == [("b#0", ["made"]), ("b#1", ["made"]), ("again", ["last"])]
    folder = ran.root / "rigArchive"
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["again-0/b/made", "again-1/b/made", "again-loop/last"]
    assert (ran.root / "agentRoot" / "kept").exists()


async def test_every_event_of_a_loop_bears_the_runtime_id(tmp_path: Path) -> None:
    ran, _ = await play(tmp_path, GOOD, items=(loop(codon("b"), terminateOn={"type": "iterationLimit", "limit": 1}),))
    named = [event.data for event in ran.events if "codonId" in event.data]
    assert {data["codonId"] for data in named} == {"b#0"}
    assert {data["baseCodonId"] for data in named} == {"b"}


async def test_a_loop_ends_when_the_context_is_full_and_drops_the_rest(tmp_path: Path) -> None:
    inner = [codon(name, continuationMode="continue-previous") for name in ("b", "c")]
    items = (codon("a"), loop(*inner, **UNTIL_FULL), codon("z"))
    ran, agent = await play(tmp_path, GOOD, GOOD, GOOD, FULL, GOOD, items=items)
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["a", "b#0", "c#0", "b#1", "z"]
    assert all(event.data["success"] for event in ran.of("codon.completed"))
    last = ran.of("loop.iteration.completed")[-1].data
    assert (last["isFinal"], last["terminationReason"]) == (True, "context_exceeded")
    assert ["--resume" in call["argv"] for call in agent.calls()] == [False, True, True, True, False]


async def test_an_ignored_failure_does_not_end_a_loop(tmp_path: Path) -> None:
    ran, _ = await play(tmp_path, FULL, GOOD, items=(loop(codon("b")),))
    assert [event.data["success"] for event in ran.of("codon.completed")] == [False, True]
    assert [event.data["isFinal"] for event in ran.of("loop.iteration.completed")] == [False, True]


async def test_a_failure_that_aborts_ends_the_run_within_the_iteration(tmp_path: Path) -> None:
    ran, _ = await play(tmp_path, [INIT, ["exit", 1]], items=(loop(codon("b", onFailure="abort")), codon("z")))
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["b#0"]
    assert ran.of("loop.iteration.completed") == []
    assert ran.result is not None
    assert ran.result.reason == "codon failure: b#0"
