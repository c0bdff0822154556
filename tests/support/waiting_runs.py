"""Runs that wait between codons and are taken back, in this process and in ones that are killed."""

from collections.abc import Callable
from pathlib import Path

import anyio
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, write_hank

from hankwatch.app import LiveRun, open_run
from hankwatch.core.errors import OrderRefused
from hankwatch.core.limits import within
from hankwatch.options import RunOptions
from hankwatch.runner.orders import Order
from hankwatch.runner.run import RunResult
from hankwatch.stream.lock import holder, lock_path

LINES = (
    '{"type":"system","subtype":"init","session_id":"s"}',
    '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}',
)
Orders = list[tuple[Order, str | None]]
NEXT = (Order.NEXT, None)


def two_codons(tmp_path: Path) -> Path:
    """``one`` writes a.txt and b.log; ``two`` changes the one, archives the other, and copies a kit."""
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "agent.jsonl").write_text("\n".join(LINES) + "\n")
    agent = f"exec:cat {tmp_path / 'agent.jsonl'}"
    kept = {"agent": agent, "checkpointedFiles": ["*.txt", "*.log"]}

    def rig(script: str) -> dict[str, object]:
        return {"type": "command", "command": {"run": script}}

    kit = {"type": "copy", "copy": {"from": "./kit", "to": "kit"}}
    one = codon("one", rigSetup=[rig("echo 1 > a.txt; echo 1 > b.log")], **kept)
    two = codon("two", rigSetup=[kit, rig("echo 2 >> a.txt; echo 2 > late.txt")], archiveOnSuccess=["b.log"], **kept)
    path = write_hank(tmp_path / "hank", one, two)
    (path / "kit").mkdir()
    (path / "kit" / "tool").write_text("tool")
    return path


async def operated(
    path: Path, root: Path, orders: Orders, *, resume: bool = False, before: Callable[[Order], object] = bool
) -> tuple[Ran, list[str]]:
    """A run that is given the next of ``orders`` each time it waits, and what it answered.

    ``before`` hears of each order before it is given.
    """
    waits = anyio.Event()
    answers: list[str] = []
    results: list[RunResult] = []

    async def operate(live: LiveRun) -> None:
        nonlocal waits
        for order, target in orders:
            await within(live.clock, 15.0, waits.wait)
            if order is not Order.CHECKPOINTS:
                waits = anyio.Event()
            before(order)
            try:
                answers.append(await live.orders.carry_out(order, target))
            except OrderRefused as error:
                answers.append(f"refused: {error}")
                waits.set()
        assert len(answers) == len(orders), answers

    options = RunOptions(path, execution=root, autostart=False, resume=resume)
    async with open_run(options, environ=environment()) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(lambda event: waits.set() if event.type == "server.idle" else None, name="operator")
        tasks.start_soon(operate, live)
        results.append(await live.carry_out())
        named = holder(lock_path(live.execution.layout.journal))
        assert named is not None
        assert named.run == live.run_id
    return Ran(root, results[0]), answers


def workspace(root: Path) -> dict[str, str]:
    """What the files of a run's workspace hold, by path."""
    files = (path for path in (root / "agentRoot").rglob("*") if path.is_file())
    return {str(path.relative_to(root / "agentRoot")): path.read_text() for path in files}
