"""What a trigger saw, matched and fired over the time of a run; what ``try`` draws on a terminal, for a page."""

from dataclasses import dataclass, field

from hankwatch.bench.attempt import Fire
from hankwatch.events.envelope import Event
from hankwatch.pages.bins import Bins
from hankwatch.pages.timeline import Axis, Lane, LaneGroup, Timeline
from hankwatch.pages.words import duration

_LANES = (
    ("events", "event quiet", ("event", "events")),
    ("matches", "event", ("match", "matches")),
    ("fires", "fire", ("fire", "fires")),
)


@dataclass(slots=True)
class Strip:
    """Counts as they happen; its size does not grow with the run."""

    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("events", "matches", "fires"), 0))
    _bins: Bins | None = None

    def look(self, event: Event, matches: int) -> None:
        """Take the next event that triggers can see, and how many matches it completed."""
        if self._bins is None:
            self._bins = Bins(event.at_ms)
        self._add("events", event.at_ms, 1)
        self._add("matches", event.at_ms, matches)

    def fired(self, fire: Fire) -> None:
        """Take the next fire."""
        self._add("fires", fire.batch.at_ms, 1)

    def drawn(self) -> Timeline | None:
        """Lanes with a common time axis; None where nothing happened."""
        if self._bins is None:
            return None
        axis = Axis(self._bins)
        lanes = tuple(
            Lane(name, f"{self.totals[name]:,}", tuple(axis.counts(name, look, unit, max(self._bins.counts(name)))))
            for name, look, unit in _LANES
        )
        return Timeline((LaneGroup("Over time", lanes),), axis.ticks(), duration(self._bins.width_ms))

    def _add(self, lane: str, at_ms: int, count: int) -> None:
        self.totals[lane] += count
        if self._bins is not None:
            for _ in range(count):
                self._bins.add(lane, at_ms)
