"""What a codon may still use, and when it has used it up (reference 2.4 and 3.7).

Pure: limits come from the hank and the run's ceilings, usage from the fold of the journal, so a resumed run counts
what runs before it have spent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hankwatch.events.codec import parse_stamp
from hankwatch.events.run import (
    BudgetActual,
    BudgetCeiling,
    BudgetLimits,
    BudgetRow,
    BudgetSummary,
    BudgetTotals,
    LoopContext,
    TokenUsage,
)
from hankwatch.events.shapes import BudgetCurrency, BudgetExceeded
from hankwatch.hank.budget import ContainerBudget, OnExceeded
from hankwatch.hank.model import Hank
from hankwatch.runner.plan import StartCodon
from hankwatch.runner.settings import RunBudget
from hankwatch.runner.state import CodonRecord, total_cost

_NAMES: Mapping[BudgetCurrency, str] = {
    "cost": "maxDollars",
    "duration": "maxTimeSeconds",
    "outputTokens": "maxOutputTokens",
    "contextTokens": "maxContextTokens",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """What an attempt may use of one thing; it is reached at exactly this much."""

    currency: BudgetCurrency
    limit: float
    """In USD, seconds or tokens; 0 when nothing is left."""
    on_exceeded: OnExceeded


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that was reached."""

    what: BudgetExceeded
    on_exceeded: OnExceeded

    @property
    def message(self) -> str:
        """For people."""
        return f"budget reached: {self.what.used:g} of {self.what.limit:g} ({_NAMES[self.what.currency]})"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one attempt may use: the lowest limit of each currency."""

    limits: tuple[Limit, ...] = ()

    @property
    def spent(self) -> Exceeded | None:
        """The limit of which nothing is left before the agent has begun."""
        empty = next((limit for limit in self.limits if limit.limit <= 0), None)
        return None if empty is None else _exceeded(empty, 0.0)

    @property
    def seconds(self) -> Limit | None:
        """The limit of its time."""
        return next((limit for limit in self.limits if limit.currency == "duration"), None)

    def as_json(self) -> dict[str, Any]:
        """As ``CodonStarted`` carries it, under the names of the hank's budgets."""
        return {_NAMES[limit.currency]: limit.limit for limit in self.limits}


@dataclass(slots=True)
class Meter:
    """Counts what one attempt uses."""

    allowance: Allowance
    _used: dict[BudgetCurrency, float] = field(default_factory=dict)

    @property
    def counts_money(self) -> bool:
        """Whether costs matter here."""
        return any(limit.currency == "cost" for limit in self.allowance.limits)

    def add(self, usage: TokenUsage, cost_usd: float) -> Exceeded | None:
        """Count one increment; the limit that is reached with it, if any.

        ``cost_usd`` is that of the whole attempt by now: what is known, and an estimate of what is not stated yet.
        """
        used = self._used
        used["cost"] = cost_usd
        used["outputTokens"] = used.get("outputTokens", 0) + usage.output_tokens
        used["contextTokens"] = max(used.get("contextTokens", 0), usage.input_tokens + usage.output_tokens)
        for limit in self.allowance.limits:
            if limit.currency in used and used[limit.currency] >= limit.limit:
                return _exceeded(limit, used[limit.currency])
        return None


def time_is_up(limit: Limit) -> Exceeded:
    """What is reached when ``limit`` of time has passed."""
    return _exceeded(limit, limit.limit)


def _exceeded(limit: Limit, used: float) -> Exceeded:
    what = BudgetExceeded(currency=limit.currency, limit=max(0.0, limit.limit), used=used)
    return Exceeded(what, limit.on_exceeded)


def allowance(hank: Hank, ceiling: RunBudget, step: StartCodon, records: Sequence[CodonRecord]) -> Allowance:
    """What the next attempt of a codon may use.

    Args:
        hank: The hank.
        ceiling: Of the whole run, the hank's own already among it.
        step: The codon.
        records: Every attempt so far, those of runs that this one goes on from included.
    """
    codon, loop = step.codon, step.place.loop if step.place else None
    found: list[Limit] = []
    if own := codon.budget:
        ending = own.on_exceeded or "complete"
        found += _limits(ending, own.max_dollars, own.max_time_seconds)
        found += [Limit("outputTokens", own.max_output_tokens, ending)] if own.max_output_tokens else []
        found += [Limit("contextTokens", own.max_context_tokens, ending)] if own.max_context_tokens else []
    if loop is not None and loop.budget is not None:
        inside = [record for record in records if _loop_of(record) == loop.id]
        found += _pool_limits(loop.budget, [c.id for c in loop.codons], codon.id, _by_codon(inside))
    whole = (hank.overrides and hank.overrides.budget) or ContainerBudget()
    whole = whole.model_copy(update={"max_dollars": ceiling.max_dollars, "max_time_seconds": ceiling.max_time_seconds})
    found += _pool_limits(whole, [item.id for item in hank.hank], loop.id if loop else codon.id, _by_item(records))
    lowest: dict[BudgetCurrency, Limit] = {}
    for limit in found:  # of equal ones the inner stands
        if limit.currency not in lowest or limit.limit < lowest[limit.currency].limit:
            lowest[limit.currency] = limit
    return Allowance(tuple(lowest.values()))


@dataclass(slots=True)
class _Used:
    cost_usd: float = 0.0
    seconds: float = 0.0


def _limits(ending: OnExceeded, dollars: float | None, seconds: float | None) -> list[Limit]:
    found = [Limit("cost", dollars, ending)] if dollars is not None else []
    return found + ([Limit("duration", seconds, ending)] if seconds is not None else [])


def _pool_limits(pool: ContainerBudget, children: Sequence[str], child: str, used: Mapping[str, _Used]) -> list[Limit]:
    """What a pool leaves to one of its children."""
    seconds = pool.max_time_seconds
    if seconds is not None:
        seconds -= sum(part.seconds for part in used.values())
    return _limits(pool.on_exceeded or "complete", _dollars_left(pool, children, child, used), seconds)


def _dollars_left(
    pool: ContainerBudget, children: Sequence[str], child: str, used: Mapping[str, _Used]
) -> float | None:
    if pool.max_dollars is None:
        return None
    spent = {name: used[name].cost_usd if name in used else 0.0 for name in children}
    left = pool.max_dollars - sum(spent.values())
    if not pool.proportional:
        return left
    shares = {name: pool.max_dollars * share for name, share in portions(pool, children).items()}
    if pool.allocation == "proportional-strict":
        # What those before it have not spent is gone.
        before = children[: children.index(child)]
        left -= sum(max(0.0, shares[name] - spent[name]) for name in before)
    return min(shares[child] - spent[child], left)


def portions(pool: ContainerBudget, children: Sequence[str]) -> dict[str, float]:
    """Child id -> its part of the pool; children without a share split the rest evenly."""
    shares = pool.shares or {}
    without = [name for name in children if name not in shares]
    rest = max(0.0, 1.0 - sum(shares.values())) / max(1, len(without))
    return {name: shares.get(name, rest) for name in children}


def _loop_of(record: CodonRecord) -> str | None:
    return record.loop.get("loopId") if record.loop else None


def _by_codon(records: Iterable[CodonRecord]) -> dict[str, _Used]:
    return _sum((record.base_codon_id or record.codon_id, record) for record in records)


def _by_item(records: Iterable[CodonRecord]) -> dict[str, _Used]:
    return _sum((_loop_of(record) or record.base_codon_id or record.codon_id, record) for record in records)


def _sum(named: Iterable[tuple[str, CodonRecord]]) -> dict[str, _Used]:
    used: dict[str, _Used] = {}
    for name, record in named:
        part = used.setdefault(name, _Used())
        part.cost_usd += record.known_cost_usd
        part.seconds += agent_seconds(record)
    return used


def agent_seconds(record: CodonRecord) -> float:
    """How long its agent ran, as far as the journal tells."""
    began = parse_stamp(record.agent_began_at) if record.agent_began_at else None
    ended = parse_stamp(record.agent_ended_at) if record.agent_ended_at else None
    return 0.0 if began is None or ended is None else max(0, ended - began - record.waited_ms) / 1000


def has_limits(hank: Hank, ceiling: RunBudget) -> bool:
    """Whether anything in this run has a budget."""
    return hank.has_budgets or ceiling != RunBudget()


def summary(hank: Hank, ceiling: RunBudget, records: Sequence[CodonRecord]) -> BudgetSummary:
    """The table at the end of a run with limits: one row for each codon, all its attempts in it."""
    attempts: dict[str, list[CodonRecord]] = {}
    for record in records:
        attempts.setdefault(record.codon_id, []).append(record)
    budget = hank.overrides.budget if hank.overrides else None
    return BudgetSummary(
        ceiling=BudgetCeiling(max_dollars=ceiling.max_dollars, max_time_seconds=ceiling.max_time_seconds),
        allocation=(budget.allocation if budget else None) or "shared",
        rows=[_row(codon_id, own) for codon_id, own in attempts.items()],
        totals=BudgetTotals(
            budget_dollars=ceiling.max_dollars,
            actual_dollars=total_cost(record.cost_usd for record in records),
            actual_time_seconds=sum(agent_seconds(record) for record in records),
        ),
    )


def _row(codon_id: str, attempts: Sequence[CodonRecord]) -> BudgetRow:
    last = attempts[-1]
    known = {"maxDollars", "maxTimeSeconds", "maxOutputTokens"}
    return BudgetRow(
        codon_id=codon_id,
        loop_context=LoopContext.model_validate(last.loop) if last.loop else None,
        status=_row_status(last),
        budget=BudgetLimits.model_validate({name: v for name, v in last.budget.items() if name in known}),
        actual=BudgetActual(
            dollars=total_cost(record.cost_usd for record in attempts),
            time_seconds=sum(agent_seconds(record) for record in attempts),
            output_tokens=sum(record.tokens.output for record in attempts),
        ),
    )


def _row_status(record: CodonRecord) -> Literal["completed", "failed", "skipped", "exceeded", "running"]:
    if record.verdict.get("budgetExceeded"):
        return "exceeded"
    if record.status == "completed" or record.status == "failed" or record.status == "skipped":  # noqa: PLR1714 - mypy
        return record.status
    return "running"
