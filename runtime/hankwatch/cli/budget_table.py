"""What every part of a hank may use before anything was spent, as ``validate`` shows it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hankwatch.hank.budget import ContainerBudget
from hankwatch.hank.model import Hank, Loop
from hankwatch.runner.budget import Allowance, allowance, portions
from hankwatch.runner.plan import LoopPlace, StartCodon
from hankwatch.runner.settings import RunBudget

COLUMNS = ("budget", "#dollars", "#seconds", "#output tokens", "#context tokens", "allocation", "when reached")
_CURRENCIES = ("cost", "duration", "outputTokens", "contextTokens")


@dataclass(frozen=True, slots=True)
class _Pool:
    """What several share."""

    budget: ContainerBudget
    children: Sequence[str]

    def part_of(self, child: str) -> str:
        """How much of its dollars a child may use at most."""
        if self.budget.max_dollars is None or not self.budget.proportional:
            return ""
        return f"{portions(self.budget, self.children)[child]:.0%}"


def budget_rows(hank: Hank, ceiling: RunBudget) -> Iterator[tuple[str, ...]]:
    """One row of ``COLUMNS`` for the run, each loop and each codon.

    Args:
        hank: The hank.
        ceiling: Of the whole run, from settings and hank.
    """
    whole = (hank.overrides and hank.overrides.budget) or ContainerBudget()
    whole = whole.model_copy(update={"max_dollars": ceiling.max_dollars, "max_time_seconds": ceiling.max_time_seconds})
    pool = _Pool(whole, [item.id for item in hank.hank])
    yield _row_of_pool("whole run", whole, "")
    for item in hank.hank:
        part = pool.part_of(item.id)
        if not isinstance(item, Loop):
            yield _row(item.id, allowance(hank, ceiling, StartCodon(item, item.id), ()), part)
            continue
        inner = _Pool(item.budget or ContainerBudget(), [codon.id for codon in item.codons])
        yield _row_of_pool(f"loop {item.id}", inner.budget, part)
        for index, codon in enumerate(item.codons):
            step = StartCodon(codon, f"{codon.id}#0", LoopPlace(item, 0, index))
            yield _row(f"  {codon.id}", allowance(hank, ceiling, step, ()), inner.part_of(codon.id))


def _row_of_pool(name: str, budget: ContainerBudget, part: str) -> tuple[str, ...]:
    limited = budget.max_dollars is not None or budget.max_time_seconds is not None
    allocation = ", ".join(filter(None, (part, (budget.allocation or "shared") if limited else "")))
    ending = (budget.on_exceeded or "complete") if limited else ""
    return (name, _number(budget.max_dollars), _number(budget.max_time_seconds), "", "", allocation, ending)


def _row(name: str, may_use: Allowance, part: str) -> tuple[str, ...]:
    limits = {limit.currency: limit for limit in may_use.limits}
    numbers = (_number(limits[name].limit if name in limits else None) for name in _CURRENCIES)
    endings = dict.fromkeys(limit.on_exceeded for limit in may_use.limits)
    return (name, *numbers, part, " or ".join(endings))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,g}"
