"""Where a run stands, as ``state.snapshot`` tells it."""

from hankwatch.events.run import StateSnapshot
from hankwatch.runner.ledger import Ledger


def snapshot(ledger: Ledger) -> StateSnapshot:
    """All that has ended and still counts, newest first."""
    done = [record.as_json() for record in reversed(ledger.state.thread) if record.final]
    return StateSnapshot.model_validate(
        {
            "completedCodons": done,
            "fileTree": [],
            "totalCost": ledger.run.cost_usd,
            "totalTime": max(0, ledger.stream.now_ms() - ledger.started_ms),
            "isRollingBack": False,
        }
    )
