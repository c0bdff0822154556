"""kill -9 of a waiting run while it rolls back, then --resume: it was taken back or stands, and nothing is lost."""

import random
from pathlib import Path

import pytest
from tests.support.killed import killed_at_step
from tests.support.laws import transition
from tests.support.runs import Ran
from tests.support.waiting_runs import NEXT, Orders, operated, two_codons, workspace

from hankwatch.processes.tree import marked_pids

GOING_BACK = """
import anyio
from pathlib import Path
from tests.support.waiting_runs import *
at, steps_left = steps_left, 1 << 60
counted("write")
def arm(order):
    global steps_left
    steps_left = at if order is Order.ROLLBACK else 1 << 60
anyio.run(lambda: operated(
    Path(sys.argv[2]), Path(sys.argv[3]), [NEXT, NEXT, (Order.ROLLBACK, "one"), (Order.STOP, None)], before=arm
))
"""
AFTER_ONE = {"a.txt": "1\n", "b.log": "1\n"}
AFTER_TWO = {"a.txt": "1\n2\n", "late.txt": "2\n", "kit/tool": "tool"}
STEPS = 50
"""Fewer than a rollback and the stop behind it have."""


async def check_killed_rollback(tmp_path: Path, step: int) -> bool:
    path, root = two_codons(tmp_path), tmp_path / "run"
    killed = killed_at_step(GOING_BACK, step, str(path), str(root))
    written = Ran(root).journal.read_bytes()
    stands = sum(transition(event) == "RunStarted" for event in Ran(root).events) == 2
    archived = root / "rigArchive" / "two" / "b.log"
    if not killed:
        assert workspace(root) == AFTER_ONE
        return False
    seen: list[dict[str, str]] = []
    # A waiting run looks as it did before the first order: settled, and nothing begun.
    orders: Orders = [NEXT, NEXT] if stands else [NEXT]
    ran, _ = await operated(path, root, orders, resume=True, before=lambda _: seen.append(workspace(root)))
    assert Ran(root).journal.read_bytes().startswith(written[: written.rfind(b"\n") + 1])
    assert ran.result is not None
    assert ran.result.success
    assert seen[0] == (AFTER_ONE if stands else AFTER_TWO)
    assert workspace(root) == AFTER_TWO
    assert archived.read_text() == "1\n"
    assert [e.data["codonId"] for e in ran.of("codon.completed")] == ["one", "two", *["two"] * stands]
    assert len(ran.of("rollback.completed")) == stands
    assert not (root / ".hankweave" / "rollback").exists()
    for event in ran.events:
        if transition(event) == "RunStarted":
            assert marked_pids(event.data["runId"]) == []
    return True


@pytest.mark.slow
@pytest.mark.parametrize("step", sorted(random.Random(7).sample(range(STEPS), 4)))
async def test_a_waiting_run_killed_while_rolling_back_goes_on(tmp_path: Path, step: int) -> None:
    assert await check_killed_rollback(tmp_path, step)


@pytest.mark.soak
async def test_a_waiting_run_killed_at_every_step_of_a_rollback_goes_on(tmp_path: Path) -> None:
    step = 0
    while await check_killed_rollback(tmp_path / str(step), step):
        step += 1
    assert step > STEPS
