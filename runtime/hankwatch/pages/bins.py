"""Counts over time in a fixed number of bins, whatever the length of the run."""

from dataclasses import dataclass, field

SIZE = 160
"""Bins at most; a run of more than that many milliseconds fills at least half of them."""


@dataclass(slots=True)
class Bins:
    """Counts per lane and equal span of time; the span doubles when the run outgrows it."""

    start_ms: int
    """The first bin begins here; what is stamped earlier counts there."""
    width_ms: int = 1
    size: int = SIZE
    """Bins at most; even."""
    end_ms: int = field(init=False)
    """The last instant that was counted."""
    _lanes: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.end_ms = self.start_ms

    def add(self, lane: str, at_ms: int, amount: int = 1) -> None:
        """Count one, or so many; there are as many lanes as the caller has names for."""
        self.reach(at_ms)
        self._lanes.setdefault(lane, [0] * self.size)[self.index(at_ms)] += amount

    def copy(self) -> "Bins":
        """The same as of now, whatever is counted later."""
        made = Bins(
            self.start_ms, self.width_ms, self.size, {lane: counts.copy() for lane, counts in self._lanes.items()}
        )
        made.end_ms = self.end_ms
        return made

    def reach(self, at_ms: int) -> None:
        """Make room for an instant."""
        self.end_ms = max(self.end_ms, at_ms)
        while self.end_ms - self.start_ms >= self.width_ms * self.size:
            self.width_ms *= 2
            for counts in self._lanes.values():
                counts[:] = [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)] + [0] * (self.size // 2)

    def index(self, at_ms: int) -> int:
        """The bin of an instant within reach."""
        return max(0, at_ms - self.start_ms) // self.width_ms

    @property
    def used(self) -> int:
        """How many bins the run fills."""
        return self.index(self.end_ms) + 1

    def counts(self, lane: str) -> list[int]:
        """One number per used bin."""
        return self._lanes.get(lane, [0] * self.size)[: self.used]
