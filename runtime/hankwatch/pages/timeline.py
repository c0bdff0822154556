"""When what happened, as bars in lanes: geometry only, in thousandths of the run's time; templates draw it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hankwatch.pages.bins import Bins
from hankwatch.pages.codons import CodonFacts
from hankwatch.pages.facts import BOOKKEEPING_LANE, OTHER_LANE, RunFacts
from hankwatch.pages.fires import SentinelFacts
from hankwatch.pages.words import duration, joined, plural

WIDTH, HEIGHT = 1000, 24
"""Of one lane; both are stretched to what the page has."""
_LEAST_HEIGHT, _LEAST_WIDTH = 5.0, 3.0
_CODON_ROWS = 20
_ORDER = ("messages", "thinking", "tool calls", "tool results", "failed tool calls", "file changes", "rig output")
_LAST = (OTHER_LANE, BOOKKEEPING_LANE)
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle in a lane."""

    x: float
    y: float
    width: float
    height: float
    look: str
    """What it means: a style class."""
    title: str
    target: str = ""
    """The anchor on the page that it leads to."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the timeline."""

    label: str
    summary: str
    """What it shows, in words."""
    bars: tuple[Bar, ...]
    target: str = ""


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Lanes of one kind."""

    title: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on the time axis."""

    percent: float
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All of it."""

    groups: tuple[LaneGroup, ...]
    ticks: tuple[Tick, ...]
    bin: str
    """How much time one bar of a count stands for."""


def timeline(facts: RunFacts) -> Timeline:
    """When what happened in a run."""
    axis = Axis(facts.bins)
    groups = (
        LaneGroup("Codons", tuple(_codon_lanes(facts, axis))),
        LaneGroup("Events by type", tuple(_event_lanes(facts, axis))),
        LaneGroup("Sentinels", tuple(_sentinel_lanes(facts, axis))),
        LaneGroup("Watchdog", tuple(_watchdog_lanes(facts, axis))),
    )
    return Timeline(tuple(group for group in groups if group.lanes), axis.ticks(), duration(facts.bins.width_ms))


class Axis:
    """Instants as places."""

    def __init__(self, bins: Bins) -> None:
        self.bins = bins
        self.start_ms = bins.start_ms
        self.span_ms = max(1, bins.end_ms - self.start_ms)

    def x(self, at_ms: int) -> float:
        return round(WIDTH * min(1.0, max(0.0, (at_ms - self.start_ms) / self.span_ms)), 1)

    def between(self, began_ms: int, ended_ms: int) -> tuple[float, float]:
        """Left end and width."""
        x = min(self.x(began_ms), WIDTH - _LEAST_WIDTH)
        return x, max(_LEAST_WIDTH, round(self.x(ended_ms) - x, 1))

    def ticks(self) -> tuple[Tick, ...]:
        """Round parts of the whole, with the time since the beginning."""
        return tuple(Tick(100 * n / _TICKS, duration(self.span_ms * n / _TICKS)) for n in range(_TICKS + 1))

    def counts(self, lane: str, look: str, unit: tuple[str, str], most: int) -> Iterator[Bar]:
        """One bar for each bin that counted anything; as high as ``most`` is a full one."""
        for index, count in enumerate(self.bins.counts(lane)):
            if count:
                at_ms = self.start_ms + index * self.bins.width_ms
                x, width = self.between(at_ms, at_ms + self.bins.width_ms)
                height = round(max(_LEAST_HEIGHT, HEIGHT * count / max(1, most)), 1)
                title = f"{plural(count, *unit)} after {duration(at_ms - self.start_ms)}"
                yield Bar(x, round(HEIGHT - height, 1), width, height, look, title)


def _codon_lanes(facts: RunFacts, axis: Axis) -> Iterator[Lane]:
    rows: dict[str, list[CodonFacts]] = {}
    for codon in facts.codons:
        if not codon.earlier:
            row = codon.base_id if codon.base_id in rows or len(rows) < _CODON_ROWS else ""
            rows.setdefault(row, []).append(codon)
    for base_id, codons in rows.items():
        bars: dict[tuple[int, str], Bar] = {}
        for codon in codons:
            bar = _of_codon(codon, facts, axis)
            before = bars.get(key := (int(bar.x), bar.look))
            if before is not None:  # a run of thousands has no room for each
                bar = replace(bar, x=before.x, title=f"several, up to {bar.title}")
            bars[key] = bar
        yield Lane(base_id or "further codons", _of_codons(codons), tuple(bars.values()), facts.anchor_of(codons[0]))


def _of_codon(codon: CodonFacts, facts: RunFacts, axis: Axis) -> Bar:
    ended_ms = codon.ended_ms if codon.ended_ms is not None else axis.bins.end_ms
    x, width = axis.between(codon.began_ms, ended_ms)
    title = f"{codon.codon_id}: {codon.status}, {duration(ended_ms - codon.began_ms)}"
    return Bar(x, 3, width, HEIGHT - 6, f"codon {codon.status}", title, facts.anchor_of(codon))


def _of_codons(codons: list[CodonFacts]) -> str:
    if len(codons) == 1:
        return codons[0].status
    failed = sum(codon.failed for codon in codons)
    return joined(f"{len(codons)} ×", f"{failed} failed" if failed else "")


def _event_lanes(facts: RunFacts, axis: Axis) -> Iterator[Lane]:
    shares = {share.name: share for share in facts.lanes}
    names = [name for name in (*_ORDER, *_LAST) if name in shares]
    names[len(names) - sum(name in _LAST for name in names) : 0] = [name for name in shares if name not in names]
    most = {name: max(axis.bins.counts(f"type {name}"), default=1) for name in names}
    scale = max((count for name, count in most.items() if name not in _LAST), default=1)
    for name in names:
        look = "event bad" if name.startswith("failed") else "event quiet" if name in _LAST else "event"
        full = most[name] if name in _LAST else scale
        bars = tuple(axis.counts(f"type {name}", look, ("event", "events"), full))
        yield Lane(name, f"{shares[name].count:,}", bars)


def _sentinel_lanes(facts: RunFacts, axis: Axis) -> Iterator[Lane]:
    for number, sentinel in enumerate(facts.sentinels, 1):
        lane = f"fired {sentinel.id}"
        most = max(axis.bins.counts(lane), default=1)
        bars = [_with_target(bar, sentinel, axis) for bar in axis.counts(lane, "fire", ("fire", "fires"), most)]
        bars += axis.counts(f"failed {sentinel.id}", "fire bad", ("failed fire", "failed fires"), most)
        failed = f"{sentinel.failed} failed" if sentinel.failed else ""
        summary = joined(plural(sentinel.fired, "fire"), failed)
        yield Lane(sentinel.id, summary, tuple(bars), f"sentinel-{number}")


def _with_target(bar: Bar, sentinel: SentinelFacts, axis: Axis) -> Bar:
    for fire in sentinel.fires:
        if abs(axis.x(fire.at_ms) - bar.x) <= bar.width:
            return Bar(bar.x, bar.y, bar.width, bar.height, bar.look, bar.title, f"fire-{fire.anchor}")
    return bar


def _watchdog_lanes(facts: RunFacts, axis: Axis) -> Iterator[Lane]:
    for kind, count, look in (("nudge", facts.nudges, "nudge"), ("interrupt", facts.interrupts, "interrupt bad")):
        if count:
            bars = tuple(axis.counts(f"watchdog {kind}", look, (kind, kind + "s"), 1))
            bars = tuple(Bar(b.x, 0, b.width, HEIGHT, b.look, b.title, "watchdog") for b in bars)
            yield Lane(kind + "s", f"{count:,}", bars, "watchdog")
