"""What a process that was killed left behind in an execution (design "How it runs" 7 and 8)."""

from hankwatch.core.clock import Clock
from hankwatch.events.run import Info
from hankwatch.processes.tree import kill_marked
from hankwatch.runner.ledger import Ledger


async def end_orphans(ledger: Ledger, clock: Clock) -> None:
    """End the children of runs that have no end. To be called by the lock's holder only.

    Whoever carried them out has ended: else the lock would be its own.
    """
    for run in ledger.state.runs:
        if run.status == "running" and (left := await kill_marked(run.run_id, clock=clock)):
            pids = ", ".join(map(str, left))
            message = f"Of the crashed run {run.run_id} these processes could not be ended: {pids}"
            ledger.stream.emit(Info(message=message, code="orphans-left", details={"pids": list(left)}))


def mark_crashed(ledger: Ledger) -> None:
    """Say of runs that have no end that they crashed."""
    for run in ledger.state.runs:
        if run.status == "running":
            ledger.crash(run)
