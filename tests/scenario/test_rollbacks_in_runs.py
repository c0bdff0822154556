"""A waiting run can be taken back to a checkpoint: files, archive and journal, and it goes on from there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.laws import transition
from tests.support.runs import Ran, environment, killed_after, run_here
from tests.support.waiting_runs import NEXT, Orders, operated, two_codons, workspace

from hankwatch.app import open_run
from hankwatch.core.errors import OrderRefused
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.runner import rollback
from hankwatch.runner.orders import Order
from hankwatch.runner.state import fold

PROGRESS = "rollback.progress"
AT = "rollback.codonCheckpoint"
BACK = (Order.ROLLBACK, "one")


def from_rollback(ran: Ran) -> list[Event]:
    events = ran.events
    start = next(i for i, event in enumerate(events) if event.type == "rollback.started")
    end = next(i for i, event in enumerate(events) if i > start and event.type == "server.idle")
    return events[start : end + 1]


async def test_a_rollback_restores_files_and_archive_and_the_run_goes_on_from_there(tmp_path: Path) -> None:
    path = two_codons(tmp_path)
    ran, answers = await operated(path, tmp_path / "run", [NEXT, NEXT, BACK, (Order.STOP, None)])
    assert workspace(ran.root) == {"a.txt": "1\n", "b.log": "1\n"}
    assert answers[2].startswith("Rolled back to checkpoint ")
    told = [transition(event) or event.type for event in from_rollback(ran)]
    assert told == [
        "rollback.started",
        PROGRESS,
        AT,
        "rollback.rigCleanup",
        "rollback.rigCleanup",
        PROGRESS,
        "rollback.archiveRestore",
        AT,
        "RunCompleted",
        "RunStarted",
        "rollback.completed",
        "state.snapshot",
        "server.idle",
    ]
    assert from_rollback(ran)[-1].data["reason"] == "rollback-completed"
    assert [done["codonId"] for done in from_rollback(ran)[-2].data["completedCodons"]] == ["one"]
    started, again = (e for e in ran.events if transition(e) == "RunStarted")
    source = again.data["transition"]["data"]["startingConditions"]["source"]
    assert (source["runId"], source["afterCodon"]) == (started.data["runId"], "one")
    went_on = await run_here(path, ran.root, environ=environment(), resume=True)
    assert [event.data["codonId"] for event in went_on.of("codon.completed")] == ["one", "two", "two"]
    assert workspace(ran.root)["a.txt"] == "1\n2\n"


async def test_the_next_codon_after_a_rollback_is_the_first_that_no_longer_counts(tmp_path: Path) -> None:
    orders: Orders = [NEXT, NEXT, BACK, NEXT, NEXT]
    ran, _ = await operated(two_codons(tmp_path), tmp_path / "run", orders)
    assert ran.result is not None
    assert ran.result.success
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two", "two"]
    assert workspace(ran.root)["a.txt"] == "1\n2\n"


async def test_what_was_spent_before_a_rollback_is_still_spent_after_it(tmp_path: Path) -> None:
    path = two_codons(tmp_path)
    await operated(path, tmp_path / "run", [NEXT, (Order.STOP, None)])
    ran, _ = await operated(path, tmp_path / "run", [NEXT, BACK, (Order.STOP, None)], resume=True)
    state = fold(ran.events)
    assert [record.codon_id for record in state.thread] == ["one"]
    assert [record.codon_id for record in state.attempts] == ["one", "two"]


async def test_a_codon_can_be_taken_back_to_its_start_and_runs_again(tmp_path: Path) -> None:
    orders: Orders = [NEXT, NEXT, (Order.ROLLBACK, "two:start"), NEXT, NEXT]
    ran, _ = await operated(two_codons(tmp_path), tmp_path / "run", orders)
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two", "two"]


async def test_a_run_waits_after_a_failure_and_can_be_taken_back_without_a_resume(tmp_path: Path) -> None:
    path = two_codons(tmp_path)
    (tmp_path / "fails").touch()
    content = json.loads((path / "hank.json").read_text())
    spoil = {"type": "command", "command": {"run": f"echo spoilt > a.txt; ! rm {tmp_path / 'fails'}"}}
    content["hank"][1]["rigSetup"].insert(0, spoil)
    (path / "hank.json").write_text(json.dumps(content))
    ran, answers = await operated(path, tmp_path / "run", [NEXT, NEXT, BACK, NEXT, NEXT])
    assert answers[2].startswith("Rolled back to checkpoint ")
    assert ran.result is not None
    assert [(e.data["codonId"], e.data["success"]) for e in ran.of("codon.completed")] == [
        ("one", True),
        ("two", False),
        ("two", True),
    ]


async def test_checkpoints_are_listed_for_clients_and_for_people(tmp_path: Path) -> None:
    path = two_codons(tmp_path)
    orders: Orders = [NEXT, NEXT, (Order.CHECKPOINTS, None), (Order.STOP, None)]
    ran, answers = await operated(path, tmp_path / "run", orders)
    (listing,) = ran.of("checkpoint.list")
    rows = {(row["codonId"], row["status"]): row["sha"] for row in listing.data["checkpoints"]}
    assert ("one", "completed") in rows
    assert rows["one", "completed"][:12] in answers[2]


@pytest.mark.parametrize("target", ["three", "abcdef0123", "one:error"])
async def test_what_cannot_be_gone_back_to_is_refused_and_changes_nothing(tmp_path: Path, target: str) -> None:
    orders: Orders = [NEXT, NEXT, (Order.ROLLBACK, target), (Order.STOP, None)]
    ran, answers = await operated(two_codons(tmp_path), tmp_path / "run", orders)
    assert answers[2].startswith("refused: ")
    assert not [event for event in ran.events if event.type.startswith("rollback.")]
    assert "late.txt" in workspace(ran.root)


async def test_a_run_that_waits_for_nothing_is_not_rolled_back(tmp_path: Path) -> None:
    async with open_run(RunOptions(two_codons(tmp_path), execution=tmp_path / "run"), environ=environment()) as live:
        with pytest.raises(OrderRefused, match="waits between codons"):
            await live.orders.carry_out(Order.ROLLBACK, "one")


@pytest.mark.parametrize("last", ["rollback.started", AT, "RunStarted", "rollback.completed"])
async def test_a_run_killed_while_rolling_back_resumes_where_its_journal_says(
    tmp_path: Path, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = two_codons(tmp_path)
    finish: Callable[..., object] = rollback._finish
    left = tmp_path / "left"  # all moves made, nothing cleaned up

    def finish_after_copy(*given: object) -> object:
        shutil.copytree(tmp_path / "run", left, symlinks=True)
        return finish(*given)

    monkeypatch.setattr(rollback, "_finish", finish_after_copy)
    ran, _ = await operated(path, tmp_path / "run", [NEXT, NEXT, BACK, (Order.STOP, None)])
    monkeypatch.undo()
    stands = from_rollback(ran)
    cut = next(event for event in stands if last in {event.type, transition(event)})
    (left / ".hankweave" / "events" / "events.jsonl").write_bytes(ran.journal.read_bytes())
    killed = killed_after(Ran(left), tmp_path / "killed", cut)
    resumed = await run_here(path, killed.root, environ=environment(), resume=True)
    assert resumed.result is not None
    assert resumed.result.success
    again = last in {"RunStarted", "rollback.completed"}
    assert len(resumed.of("rollback.completed")) == again
    assert workspace(killed.root)["a.txt"] == "1\n2\n"
    assert len(resumed.of("codon.completed")) == 2 + again
    assert not (killed.root / ".hankweave" / "rollback").exists()
