"""A run that was killed goes on: nothing lost, nothing done or told twice (design "How it runs" 7)."""

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.hanks import codon, loop, sentinel
from tests.support.laws import check_laws, moved_to, transition
from tests.support.runs import Ran, Standin, killed_after, run_here, stand_in, write_hank

from hankwatch.core.errors import UsageError
from hankwatch.events.envelope import Event
from hankwatch.testing import ScriptedModel

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
SPOKE = {"id": "m", "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 10, "output_tokens": 5}}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
GOOD: Sequence[Any] = [INIT, ["line", {"type": "assistant", "message": SPOKE}], ["line", RESULT], ["until_eof"]]
CODONS = ["a", "b#0", "c#0", "b#1", "c#1", "z"]


def watched(codon_id: str, **fields: Any) -> dict[str, Any]:
    types = ["assistant.action", "codon.completed", "loop.iteration.completed"]
    observer = sentinel(trigger={"type": "event", "on": types}, userPromptText="{{ it.events }}")
    return codon(codon_id, sentinels=[{"sentinelConfig": observer}], **fields)


def a_hank(folder: Path) -> Path:
    continues = watched("z", continuationMode="continue-previous")
    again = loop(watched("b"), codon("c"), budget={"maxDollars": 50})
    return write_hank(folder, watched("a"), again, continues)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Standin, Path]:
    """A run that was not disturbed, its agent and its hank."""
    folder = tmp_path_factory.mktemp("whole")
    agent, hank = stand_in(folder / "agent", *GOOD), a_hank(folder / "hank")

    async def run() -> Ran:
        return await run_here(hank, folder / "run", environ=agent.environ, model=ScriptedModel("Seen."))

    return anyio.run(run), agent, hank


async def resume(whole: tuple[Ran, Standin, Path], root: Path, event: Event) -> Ran:
    ran, agent, hank = whole
    killed_after(ran, root, event)
    return await run_here(hank, root, environ=agent.environ, model=ScriptedModel("Seen."), resume=True)


def check_resumed(ran: Ran, event: Event) -> None:
    """All is done, and what was done before the kill was done once."""
    events = ran.events
    assert ran.result is not None
    assert ran.result.success
    before = [e for e in events if e.cursor <= event.cursor]
    assert before[-1].id == event.id, "nothing that was written is lost"
    completed = Counter(e.data["codonId"] for e in events if e.type == "codon.completed")
    assert completed == Counter(CODONS), "each codon completed once"
    assert sum(e.type == "state.snapshot" for e in events) == len(CODONS)
    iterations = [e.data["iteration"] for e in events if e.type == "loop.iteration.completed"]
    assert iterations == [0, 1]
    done = {e.data["codonId"] for e in before if moved_to(e) == "completing-sentinels"}
    again = {e.data["codonId"] for e in events[len(before) :] if transition(e) == "CodonStarted"}
    assert not done & again, "completed work is not redone"
    kinds = [transition(e) for e in events]
    ends = sum(kind in {"RunCompleted", "RunFailed", "RunCrashed"} for kind in kinds)
    assert kinds.count("RunStarted") == ends
    loaded = Counter(e.data["codonId"] for e in events if e.type == "sentinel.loaded")
    assert loaded == Counter(e.data["codonId"] for e in events if e.type == "sentinel.unloaded")
    (snapshot, *_) = reversed(ran.of("state.snapshot"))
    assert [c["codonId"] for c in snapshot.data["completedCodons"]] == CODONS[::-1]
    outputs = sum(e.type == "sentinel.output" for e in events)
    entries = sum(path.read_text().count("Seen.") for path in ran.root.glob(".hankweave/sentinels/outputs/*/*.md"))
    assert entries == outputs, "nothing is reported twice"


def points(events: Sequence[Event]) -> list[Event]:
    """Where a kill leaves something to resume."""
    return [event for event in events if transition(event) != "RunCompleted"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
async def test_a_run_killed_anywhere_goes_on(whole: tuple[Ran, Standin, Path], tmp_path: Path, seed: int) -> None:
    event = random.Random(seed).choice(points(whole[0].events))
    check_resumed(await resume(whole, tmp_path / "run", event), event)


@pytest.mark.soak
async def test_a_run_killed_after_every_single_event_goes_on(whole: tuple[Ran, Standin, Path], tmp_path: Path) -> None:
    for number, event in enumerate(points(whole[0].events)):
        check_resumed(await resume(whole, tmp_path / f"run{number}", event), event)


def first(events: Sequence[Event], kind: str) -> Event:
    return next(event for event in events if kind in (event.type, moved_to(event), transition(event)))


async def test_a_codon_whose_agent_had_ended_goes_on_from_its_sentinels(
    whole: tuple[Ran, Standin, Path], tmp_path: Path
) -> None:
    event = first(whole[0].events, "completing-sentinels")
    ran = await resume(whole, tmp_path / "run", event)
    check_resumed(ran, event)
    after = [e for e in ran.events if e.cursor > event.cursor]
    kinds = [transition(e) or e.type for e in after]
    assert kinds[:2] == ["sentinel.error", "sentinel.unloaded"] or kinds[0] == "sentinel.unloaded"
    assert kinds.index("codon.completed") < kinds.index("RunCrashed") < kinds.index("RunStarted")
    (completed,) = [e for e in after if e.type == "codon.completed" and e.data["codonId"] == "a"]
    assert completed.data["success"] is True
    assert completed.data["cost"] >= 0.25


async def test_a_codon_without_its_end_starts_anew(whole: tuple[Ran, Standin, Path], tmp_path: Path) -> None:
    event = first(whole[0].events, "running")
    ran = await resume(whole, tmp_path / "run", event)
    check_resumed(ran, event)
    started = [e for e in ran.events if transition(e) == "RunStarted"][-1].data["transition"]["data"]
    run_id = whole[0].of("state.transition")[0].data["runId"]
    assert started["startingConditions"] == {
        "type": "continuation",
        "source": {"runId": run_id, "afterCodon": None, "checkpointSha": ""},
        "reason": "continue",
    }


async def test_a_run_that_crashes_again_and_again_goes_on(whole: tuple[Ran, Standin, Path], tmp_path: Path) -> None:
    """Each resumed run is killed in turn, ever later."""
    ran, agent, hank = whole
    cut = killed_after(ran, tmp_path / "0", first(ran.events, "running"))
    for number, codon_id in enumerate(("a", "b#0", "c#0"), start=1):
        shutil.copytree(cut.root, tmp_path / f"{number}r")
        resumed = await run_here(
            hank, tmp_path / f"{number}r", environ=agent.environ, model=ScriptedModel("Seen."), resume=True
        )
        event = [e for e in resumed.events if e.type == "codon.completed" and e.data["codonId"] == codon_id][-1]
        cut = killed_after(resumed, tmp_path / f"{number}", event)
    last = await run_here(hank, cut.root, environ=agent.environ, model=ScriptedModel("Seen."), resume=True)
    check_resumed(last, event)
    assert [transition(e) for e in last.events].count("RunCrashed") == 4


async def test_files_are_archived_once_whenever_the_run_was_killed(tmp_path: Path) -> None:
    rig = [{"type": "command", "command": {"run": "touch one two"}}]
    items = (codon("a", rigSetup=rig, archiveOnSuccess=["one"]), codon("b", archiveOnSuccess=["two"]))
    agent = stand_in(tmp_path / "agent", *GOOD)
    hank = write_hank(tmp_path / "hank", *items)
    ran = await run_here(hank, tmp_path / "whole", environ=agent.environ)
    assert [e.data["archivedPaths"] for e in ran.of("archive.completed")] == [["one"], ["two"]]
    # Both have been moved by then; the event of the second is missing, and is there.
    for number, event in enumerate((ran.of("state.snapshot")[-1], ran.of("archive.completed")[-1])):
        cut = killed_after(ran, tmp_path / f"{number}", event)
        resumed = await run_here(hank, cut.root, environ=agent.environ, resume=True)
        assert [e.data["archivedPaths"] for e in resumed.of("archive.completed")] == [["one"], ["two"]]
        archived = sorted(path.name for path in (cut.root / "rigArchive").rglob("*") if path.is_file())
        assert archived == ["one", "two"]


async def test_a_failed_run_goes_on_with_the_codon_that_failed(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", ["calls", GOOD, [INIT, ["exit", 1]], GOOD])
    hank = write_hank(tmp_path / "hank", codon("a"), codon("b"), codon("c"))
    failed = await run_here(hank, tmp_path / "run", environ=agent.environ)
    assert failed.result is not None
    assert not failed.result.success
    ran = await run_here(hank, tmp_path / "run", environ=agent.environ, resume=True)
    assert ran.result is not None
    assert ran.result.success
    assert [c.codon_id for c in ran.result.record.codons] == ["b", "c"]
    assert len(agent.calls()) == 4


async def test_a_completed_run_has_nothing_to_resume(whole: tuple[Ran, Standin, Path]) -> None:
    ran, agent, hank = whole
    before = ran.journal.read_bytes()
    with pytest.raises(UsageError, match="nothing to resume"):
        await run_here(hank, ran.root, environ=agent.environ, resume=True)
    assert ran.journal.read_bytes() == before


async def test_resuming_where_nothing_ran_starts(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", *GOOD)
    ran = await run_here(write_hank(tmp_path / "hank", codon()), tmp_path / "run", environ=agent.environ, resume=True)
    assert ran.completed()["success"] is True


async def test_what_was_spent_before_the_kill_counts_against_the_budget(
    whole: tuple[Ran, Standin, Path], tmp_path: Path
) -> None:
    event = [e for e in whole[0].events if e.type == "token.usage" and e.data["codonId"] == "c#0"][-1]
    ran = await resume(whole, tmp_path / "run", event)
    started = [e.data["transition"]["data"] for e in ran.events if transition(e) == "CodonStarted"]
    allowed = [data["budget"]["maxDollars"] for data in started if data["codonId"] == "c#0"]
    assert allowed == [49.75, 49.5]
    check_laws(ran.events)


async def test_a_hank_that_changed_since_the_execution_began_is_told(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", INIT, ["exit", 1])
    hank, root = write_hank(tmp_path / "hank", codon("a")), tmp_path / "run"

    def told(ran: Ran) -> list[str]:
        return [event.data["message"] for event in ran.of("info") if event.data.get("code") == "hank-changed"]

    await run_here(hank, root, environ=agent.environ)
    assert told(await run_here(hank, root, environ=agent.environ, resume=True)) == []
    write_hank(tmp_path / "hank", codon("a", promptText="Try harder."))
    (message,) = told(await run_here(hank, root, environ=agent.environ, resume=True))
    assert message == "hank.json has changed since this execution began; what is completed is not done again"
