"""Without autostart each codon waits until it is asked for, and a waiting run can still be stopped."""

from pathlib import Path

import anyio
import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, write_hank

from hankwatch.app import LiveRun, open_run
from hankwatch.core.limits import within
from hankwatch.options import RunOptions
from hankwatch.runner.orders import Order
from hankwatch.runner.run import RunResult

LINES = (
    '{"type":"system","subtype":"init","session_id":"s"}',
    '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}',
)


async def paused_run(tmp_path: Path, *orders: Order) -> Ran:
    """A run of two codons that is given the next of ``orders`` each time it waits."""
    (tmp_path / "agent.jsonl").write_text("\n".join(LINES) + "\n")
    agent = f"exec:cat {tmp_path / 'agent.jsonl'}"
    path = write_hank(tmp_path / "hank", codon("one", agent=agent), codon("two", agent=agent))
    waits = anyio.Event()
    results: list[RunResult] = []

    async def operate(live: LiveRun) -> None:
        nonlocal waits
        for order in orders:
            await within(live.clock, 15.0, waits.wait)
            waits = anyio.Event()
            await live.orders.carry_out(order)

    options = RunOptions(path, execution=tmp_path / "run", autostart=False)
    async with open_run(options, environ=environment()) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(lambda event: waits.set() if event.type == "server.idle" else None, name="operator")
        tasks.start_soon(operate, live)
        results.append(await live.carry_out())
    return Ran(tmp_path / "run", results[0])


async def test_every_codon_and_the_end_wait_for_next(tmp_path: Path) -> None:
    ran = await paused_run(tmp_path, Order.NEXT, Order.NEXT, Order.NEXT)
    assert [event.data["reason"] for event in ran.of("server.idle")] == [
        "startup",
        "codon-completed",
        "all-codons-completed",
    ]
    assert ran.result is not None
    assert ran.result.success


@pytest.mark.parametrize(("orders", "done"), [((Order.STOP,), 0), ((Order.NEXT, Order.STOP), 1)])
async def test_a_waiting_run_can_be_stopped(tmp_path: Path, orders: tuple[Order, ...], done: int) -> None:
    ran = await paused_run(tmp_path, *orders)
    assert len(ran.of("codon.completed")) == done
    assert ran.result is not None
    assert (ran.result.success, ran.result.reason) == (False, "stopped")
