"""The budget table of a run, as it told it at its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hankwatch.events.envelope import EventData
from hankwatch.pages.words import duration, joined, money, plural

_NONE = "no limit"


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """What was spent and what was allowed, in words."""

    name: str
    exceeded: bool
    spent: str
    allowed: str


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """The whole table."""

    rows: tuple[BudgetLine, ...]
    left_out: int
    """Rows beyond those shown."""
    total: BudgetLine


def budget_facts(data: EventData, limit: int) -> BudgetFacts:
    """The table of a ``budget.summary``; at most ``limit`` rows."""
    told = data.get("rows")
    rows = [row for row in told if isinstance(row, Mapping)] if isinstance(told, list) else []
    totals, ceiling = _mapping(data.get("totals")), _mapping(data.get("ceiling"))
    spent = {"dollars": totals.get("actualDollars"), "timeSeconds": totals.get("actualTimeSeconds")}
    return BudgetFacts(
        tuple(_line(row) for row in rows[:limit]),
        max(0, len(rows) - limit),
        BudgetLine("", exceeded=False, spent=_spent(spent), allowed=_allowed(ceiling)),
    )


def _line(row: Mapping[str, Any]) -> BudgetLine:
    loop = _mapping(row.get("loopContext"))
    name = str(row.get("codonId")) + (f" ({loop.get('loopId')} {loop.get('iteration')})" if loop else "")
    exceeded = row.get("status") == "exceeded"
    return BudgetLine(name, exceeded, _spent(_mapping(row.get("actual"))), _allowed(_mapping(row.get("budget"))))


def _spent(actual: Mapping[str, Any]) -> str:
    dollars, seconds, tokens = (_number(actual.get(key)) for key in ("dollars", "timeSeconds", "outputTokens"))
    return joined(
        "cost unknown" if dollars is None else money(dollars),
        "" if seconds is None else duration(seconds * 1000),
        f"{plural(int(tokens), 'token')} out" if tokens else "",
    )


def _allowed(limits: Mapping[str, Any]) -> str:
    keys = ("maxDollars", "maxTimeSeconds", "maxOutputTokens")
    dollars, seconds, tokens = (_number(limits.get(key)) for key in keys)
    parts = (
        "" if dollars is None else money(dollars),
        "" if seconds is None else duration(seconds * 1000),
        "" if tokens is None else f"{plural(int(tokens), 'token')} out",
    )
    return joined(*parts) or _NONE


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if is_number else None
