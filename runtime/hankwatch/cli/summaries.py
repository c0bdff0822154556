"""What each sentinel of a run or replay did, as a table and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from hankwatch.cli.terminal import table
from hankwatch.pages.words import money
from hankwatch.sentinels.sentinel import SentinelSummary

_WIDE = 100
"""Columns from which the path of a report stands beside its sentinel."""


def tell_sentinels(sentinels: Sequence[SentinelSummary], console: Console) -> None:
    """One row each, and where their reports are."""
    beside = console.width >= _WIDE
    rows = table("sentinel", "codon", "#fired", "#failed", "#calls", "#cost", "#dropped", *["report"] * beside)
    for s in sentinels:
        cost = money(s.cost_usd, unpriced=s.unpriced_calls)
        numbers = map(str, (s.fired, s.failed, s.calls, cost, s.dropped_triggers + s.abandoned_triggers))
        rows.add_row(s.sentinel_id, s.codon_id, *numbers, *[s.report] * beside)
    console.print(rows)
    for s in sentinels if not beside else ():
        console.print(s.report, markup=False)


def sentinel_json(summary: SentinelSummary, root: Path) -> dict[str, Any]:
    """Its entry under ``sentinels``; ``root`` is the execution directory."""
    return {
        "sentinelId": summary.sentinel_id,
        "codonId": summary.codon_id,
        "fired": summary.fired,
        "failed": summary.failed,
        "calls": summary.calls,
        "costUsd": summary.cost_usd,
        "unpricedCalls": summary.unpriced_calls,
        "droppedTriggers": summary.dropped_triggers,
        "droppedEvents": summary.dropped_events,
        "abandonedTriggers": summary.abandoned_triggers,
        "report": str(root / summary.report),
    }
