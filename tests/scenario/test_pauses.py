"""Without autostart each codon waits until it is asked for, one that failed too; a waiting run can be stopped."""

from pathlib import Path
from typing import Any

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


async def paused_run(tmp_path: Path, *orders: Order, first: dict[str, Any] | None = None) -> Ran:
    """A run of two codons that is given the next of ``orders`` each time it waits; ``first`` is of codon one."""
    (tmp_path / "agent.jsonl").write_text("\n".join(LINES) + "\n")
    agent = f"exec:cat {tmp_path / 'agent.jsonl'}"
    one = codon("one", **{"agent": agent, **(first or {})})
    path = write_hank(tmp_path / "hank", one, codon("two", agent=agent))
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


def fails_until(tmp_path: Path, attempt: int) -> dict[str, Any]:
    """A codon whose agent succeeds from ``attempt`` on, and a rig that counts how often it was set up."""
    script = tmp_path / "agent.sh"
    count, enough = tmp_path / "attempts", "x" * attempt
    script.write_text(f'printf x >> {count}\n[ "$(cat {count})" = {enough} ] || exit 3\ncat {tmp_path}/agent.jsonl\n')
    rig = {"type": "command", "command": {"run": f"printf x >> {tmp_path / 'rigs'}"}}
    return {"agent": f"exec:sh {script}", "rigSetup": [rig]}


async def test_a_failed_codon_waits_too_and_next_tries_it_again_in_its_workspace(tmp_path: Path) -> None:
    orders = [Order.NEXT] * 5
    ran = await paused_run(tmp_path, *orders, first=fails_until(tmp_path, 3))
    assert [(e.data["codonId"], e.data["success"]) for e in ran.of("codon.completed")] == [
        ("one", False),
        ("one", False),
        ("one", True),
        ("two", True),
    ]
    assert ran.result is not None
    assert ran.result.success
    failed = ran.of("server.idle")[1].data
    assert failed["reason"] == "codon-completed"
    assert failed["message"].startswith("Codon one failed (")
    assert failed["message"].endswith("; next tries it again, rollback goes back, stop ends the run")
    assert (tmp_path / "rigs").read_text() == "x", "its rig stands"


async def test_a_run_stopped_after_a_failure_says_that_the_codon_failed(tmp_path: Path) -> None:
    ran = await paused_run(tmp_path, Order.NEXT, Order.STOP, first=fails_until(tmp_path, 2))
    assert ran.result is not None
    assert (ran.result.success, ran.result.reason) == (False, "codon failure: one")


async def test_a_failure_that_the_run_waits_after_is_not_fatal(tmp_path: Path) -> None:
    rig = {"type": "command", "command": {"run": "exit 4"}}
    ran = await paused_run(tmp_path, Order.NEXT, Order.STOP, first={"rigSetup": [rig]})
    assert [event.data["fatal"] for event in ran.of("error")] == [False]


async def test_what_has_no_outputs_ends_the_run_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "hank").mkdir()
    settings = f'[run]\noutput_dir = "{tmp_path / "out"}"\n'
    (tmp_path / "hank" / "hankwatch.toml").write_text(settings)
    outputs = [{"copy": ["*"], "beforeCopy": ["exit 5"]}]
    ran = await paused_run(tmp_path, Order.NEXT, first={"outputFiles": outputs})
    assert ran.result is not None
    assert ran.result.reason == "outputs of codon one failed"
