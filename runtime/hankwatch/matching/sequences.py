"""Sequences of events, found incrementally: O(steps) for each event, memory O(pattern) (spec sentinels 3)."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from hankwatch.events.envelope import Event, EventData
from hankwatch.matching.conditions import MISSING, equality_key

MAX_AUTOMATA = 1_000
"""How many values of `correlateBy` are followed at once."""

Step = Callable[[Event], bool]
"""Whether an event fits one step of a pattern."""
Found = tuple[Event, ...] | None
"""The events of a match in order, or None."""
Late = Callable[[int, int], None]
"""Told of a beginning that the limit ended: how many steps it had, and the milliseconds since its first."""


class Automaton(Protocol):
    """Follows one pattern through the considered events; after a match it starts afresh."""

    def idle(self, at_ms: int) -> bool:
        """Nothing is pending at this instant: only an event that fits the first step can change that."""
        ...

    def feed(self, event: Event) -> Found:
        """Take the next considered event; the match that it completes, if any."""
        ...

    def taken(self) -> int:
        """How many steps the longest beginning has that is pending."""
        ...


class Adjacent:
    """Steps on adjacent events. Bit k of ``_alive`` says: the last k+1 events fit the first k+1 steps."""

    __slots__ = ("_alive", "_last", "_late", "_steps", "_within_ms")

    def __init__(self, steps: Sequence[Step], within_ms: int | None, late: Late) -> None:
        self._steps = steps
        self._within_ms = within_ms
        self._late = late
        self._alive = 0
        self._last: deque[Event] = deque(maxlen=len(steps))

    def idle(self, at_ms: int) -> bool:  # noqa: ARG002 - a gap in time ends nothing here
        return not self._alive

    def feed(self, event: Event) -> Found:
        alive = 0
        for k, step in enumerate(self._steps):
            if (k == 0 or self._alive >> (k - 1) & 1) and step(event):
                alive |= 1 << k
        self._alive = alive
        if not alive:
            self._last.clear()
            return None
        self._last.append(event)
        if not alive >> (len(self._steps) - 1) & 1:
            return None
        if not _in_time(self._last[0], event, self._within_ms):
            self._late(len(self._steps), event.at_ms - self._last[0].at_ms)
            return None
        found = tuple(self._last)
        self._alive = 0
        self._last.clear()
        return found

    def taken(self) -> int:
        pending = self._alive & ~(1 << len(self._steps) - 1)  # all steps, but outside the limit, is no beginning
        return pending.bit_length()


class InOrder:
    """Steps with gaps between, each taken by the earliest event that fits it."""

    __slots__ = ("_steps", "_taken")

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._taken: list[Event] = []

    def idle(self, at_ms: int) -> bool:  # noqa: ARG002 - as long as it takes
        return not self._taken

    def feed(self, event: Event) -> Found:
        if not self._steps[len(self._taken)](event):
            return None
        self._taken.append(event)
        if len(self._taken) < len(self._steps):
            return None
        found, self._taken = tuple(self._taken), []
        return found

    def taken(self) -> int:
        return len(self._taken)


class _Chain(NamedTuple):
    """A beginning of the pattern, linked backwards so that longer ones share it."""

    first: Event
    order: tuple[int, int]
    last: Event
    before: "_Chain | None"

    def events(self) -> list[Event]:
        chain: _Chain | None = self
        events = []
        while chain is not None:
            events.append(chain.last)
            chain = chain.before
        return events[::-1]


class InOrderWithin:
    """Steps with gaps, first to last within a limit.

    For every number of steps the latest-starting beginning is kept: a longer chain is best made from it, so
    no match inside the limit is missed, and of several that one event completes it is the one found.
    """

    __slots__ = ("_best", "_count", "_late", "_steps", "_within_ms")

    def __init__(self, steps: Sequence[Step], within_ms: int, late: Late) -> None:
        self._steps = steps
        self._within_ms = within_ms
        self._late = late
        self._best: list[_Chain | None] = [None] * len(steps)
        self._count = 0

    def idle(self, at_ms: int) -> bool:
        latest = self._best[0]
        return latest is None or at_ms - latest.first.at_ms > self._within_ms

    def feed(self, event: Event) -> Found:
        if self._best[0] is not None and self.idle(event.at_ms):
            longest = self._best[self.taken() - 1]
            assert longest is not None
            self._late(self.taken(), event.at_ms - longest.first.at_ms)
            self._best = [None] * len(self._steps)
        self._count += 1
        # Backwards, so that one event takes one step of a chain.
        for k in range(len(self._steps) - 1, -1, -1):
            before = self._best[k - 1] if k else None
            if k and before is None:
                continue
            first, order = (before.first, before.order) if before else (event, (event.at_ms, self._count))
            known = self._best[k]
            # With the same start the earlier chain stays: each step is taken by the earliest event.
            if (known is None or order > known.order) and self._steps[k](event):
                self._best[k] = _Chain(first, order, event, before)
        whole = self._best[-1]
        if whole is None:
            return None
        self._best[-1] = None
        if not _in_time(whole.first, event, self._within_ms):
            self._late(len(self._steps), event.at_ms - whole.first.at_ms)
            return None
        self._best = [None] * len(self._steps)
        return tuple(whole.events())

    def taken(self) -> int:
        return max((k for k, chain in enumerate(self._best, 1) if chain is not None), default=0)


class Correlated:
    """One automaton for each value at a path; events without a scalar there are not considered."""

    __slots__ = ("_automata", "_make", "_read", "dropped", "unrelated")

    def __init__(self, read: Callable[[EventData], Any], make: Callable[[], Automaton]) -> None:
        self._read = read
        self._make = make
        self._automata: dict[Hashable, Automaton] = {}
        self.dropped = 0
        """How many automata were given up, oldest first, because there were more than ``MAX_AUTOMATA``."""
        self.unrelated = 0
        """How many events had no scalar at the path."""

    def idle(self, at_ms: int) -> bool:  # noqa: ARG002 - what ran out of time is dropped when there are too many
        return not self._automata

    def feed(self, event: Event) -> Found:
        value = equality_key(self._read(event.data))
        if value is MISSING:
            self.unrelated += 1
            return None
        automaton = self._automata.get(value) or self._make()
        found = automaton.feed(event)
        if automaton.idle(event.at_ms):
            self._automata.pop(value, None)
            return found
        self._automata[value] = automaton
        if len(self._automata) > MAX_AUTOMATA:
            oldest = self._automata.pop(next(iter(self._automata)))
            self.dropped += not oldest.idle(event.at_ms)
        return found

    def taken(self) -> int:
        return max((automaton.taken() for automaton in self._automata.values()), default=0)


def make_automaton(
    steps: Sequence[Step],
    *,
    consecutive: bool,
    within_ms: int | None = None,
    correlate_by: Callable[[EventData], Any] | None = None,
    late: Late,
) -> Automaton:
    """The automaton of a sequence trigger."""

    def make() -> Automaton:
        if consecutive:
            return Adjacent(steps, within_ms, late)
        return InOrder(steps) if within_ms is None else InOrderWithin(steps, within_ms, late)

    return make() if correlate_by is None else Correlated(correlate_by, make)


def _in_time(first: Event, last: Event, within_ms: int | None) -> bool:
    return within_ms is None or last.at_ms - first.at_ms <= within_ms
