"""What a run has cost over time, and the tokens of its codons: geometry only; templates draw it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from hankwatch.agents.signals import Tokens
from hankwatch.pages.codons import CodonFacts
from hankwatch.pages.facts import AGENT_SPENDING, NANO, SENTINEL_SPENDING, RunFacts
from hankwatch.pages.timeline import WIDTH, Axis, Tick
from hankwatch.pages.words import NOTHING, Cost, money

CHART_HEIGHT: Final = 160
_ROWS: Final = 20
_QUARTERS: Final = 4


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one kind of spender has spent, added up over time."""

    label: str
    look: str
    path: str
    """Of the line, as SVG has it."""
    quarters: tuple[str, ...]
    """What was spent after each quarter of the run."""
    total: Cost


@dataclass(frozen=True, slots=True)
class CostChart:
    """Money over time."""

    lines: tuple[CostLine, ...]
    top: str
    """What the upper edge stands for."""
    ticks: tuple[Tick, ...]
    incomplete: bool
    """Some prices are not known: the lines are what was spent at least."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The tokens of one codon, all its attempts and iterations together."""

    codon_id: str
    tokens: Tokens
    cost: Cost
    bars: tuple[tuple[str, float, float], ...]
    """Style class, left end and width of each part of its bar."""


def cost_chart(facts: RunFacts) -> CostChart | None:
    """Cumulative cost; None while no price is known."""
    spenders = (
        ("Agents", "agents", AGENT_SPENDING, facts.agent_cost),
        ("Sentinels", "sentinels", SENTINEL_SPENDING, facts.sentinel_cost),
    )
    sums = {lane: list(accumulate(facts.bins.counts(lane))) for _, _, lane, _ in spenders}
    top = max((spent[-1] for spent in sums.values() if spent), default=0)
    if not top:
        return None
    axis = Axis(facts.bins)
    lines = tuple(
        CostLine(label, look, _path(sums[lane], top, axis), tuple(_quarters(sums[lane], axis)), total)
        for label, look, lane, total in spenders
    )
    return CostChart(lines, money(top / NANO), axis.ticks(), bool(facts.cost.unpriced))


def _path(spent: list[int], top: int, axis: Axis) -> str:
    """Steps: money is spent at an instant."""
    steps, before = [f"M0 {CHART_HEIGHT}"], 0
    for index, amount in enumerate(spent):
        if amount != before:
            x = axis.x(axis.start_ms + index * axis.bins.width_ms)
            steps.append(f"H{x}V{round(CHART_HEIGHT * (1 - amount / top), 1)}")
            before = amount
    return "".join([*steps, f"H{WIDTH}"])


def _quarters(spent: list[int], axis: Axis) -> Iterator[str]:
    for quarter in range(1, _QUARTERS + 1):
        index = axis.bins.index(axis.start_ms + axis.span_ms * quarter // _QUARTERS)
        yield money(spent[min(index, len(spent) - 1)] / NANO)


def token_rows(facts: RunFacts) -> list[TokenRow]:
    """One for each codon of this run that says how many it used; beyond some, the rest together."""
    spent: dict[str, tuple[Tokens, Cost]] = {}
    for codon in _own(facts.codons):
        name = codon.base_id if codon.base_id in spent or len(spent) < _ROWS else ""
        tokens, cost = spent.get(name, (Tokens(), NOTHING))
        spent[name] = (tokens + codon.tokens, cost + codon.cost)
    most = max((_all(tokens) for tokens, _ in spent.values()), default=0)
    return [TokenRow(name, tokens, cost, tuple(_bars(tokens, most))) for name, (tokens, cost) in spent.items() if most]


def _own(codons: Iterable[CodonFacts]) -> Iterator[CodonFacts]:
    return (codon for codon in codons if not codon.earlier)


def _all(tokens: Tokens) -> int:
    return tokens.input + tokens.cache_creation + tokens.cache_read + tokens.output


def _bars(tokens: Tokens, most: int) -> Iterator[tuple[str, float, float]]:
    x = 0.0
    parts = (("cached", tokens.cache_read), ("in", tokens.input + tokens.cache_creation), ("out", tokens.output))
    for look, count in parts:
        width = round(WIDTH * count / most, 1)
        if count:
            yield look, x, max(2.0, width)
        x = round(x + width, 1)
