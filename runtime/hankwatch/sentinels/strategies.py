"""The four strategies: when matches become a batch, as pure state machines over stream time (spec sentinels 4).

None of them reads a clock. The owner passes matches and instants in and schedules ``next_due_ms``; whatever is
due at or before an instant is fired first, so a timer at t always comes before a match at t.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Protocol, assert_never

from pydantic import Field

from hankwatch.config.validation import ConfigModel
from hankwatch.events.envelope import Event

MAX_BATCH_EVENTS = 1_000
"""As many events as a prompt may show."""
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""As many bytes of journal lines as a batch may have, unless a single match has more."""
_MAX_WAIT_MS = 300_000
_WAIT_FACTOR = 10


class ImmediateExecution(ConfigModel):
    """Fire on each match."""

    strategy: Literal["immediate"]
    """Each match at once."""


class DebounceExecution(ConfigModel):
    """Fire when it has been quiet."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"max_wait_milliseconds"})

    strategy: Literal["debounce"]
    """All matches up to a pause."""
    milliseconds: int = Field(ge=1, le=300_000)
    """How long after the last match."""
    max_wait_milliseconds: int | None = Field(default=None, ge=1, le=_MAX_WAIT_MS)
    """At most this long after the first match, however busy it is; null for no limit (default: ten times
    `milliseconds`, at most 300,000)."""

    @property
    def max_wait_ms(self) -> int | None:
        """The limit that holds, or None for none."""
        if "max_wait_milliseconds" in self.model_fields_set:
            return self.max_wait_milliseconds
        return min(_WAIT_FACTOR * self.milliseconds, _MAX_WAIT_MS)


class CountExecution(ConfigModel):
    """Fire at every so many matches."""

    strategy: Literal["count"]
    """A fixed number of matches."""
    threshold: int = Field(ge=1, le=1_000)
    """How many matches make a batch."""


class TimeWindowExecution(ConfigModel):
    """Fire at the ends of windows."""

    strategy: Literal["timeWindow"]
    """All matches of a window; windows follow each other on a grid that starts with the first match."""
    milliseconds: int = Field(ge=1, le=3_600_000)
    """How long a window is."""


Execution = Annotated[
    ImmediateExecution | DebounceExecution | CountExecution | TimeWindowExecution, Field(discriminator="strategy")
]
"""How matches are gathered before the model is asked."""


class Cause(StrEnum):
    """Why a batch fired."""

    MATCH = "match"
    QUIET = "quiet"
    MAX_WAIT = "max_wait"
    THRESHOLD = "threshold"
    WINDOW = "window"
    FULL = "full"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class Batch:
    """What one trigger hands to the prompt."""

    events: tuple[Event, ...]
    """In the order they were matched; at most ``MAX_BATCH_EVENTS`` and ``MAX_BATCH_BYTES`` unless one match
    alone has more.
    """
    cause: Cause
    at_ms: int
    """The instant it fired: of the match, of the timer's due time, or of the drain."""


class Strategy(Protocol):
    """One sentinel's strategy. Instants never decrease from call to call."""

    def on_match(self, events: Sequence[Event], at_ms: int) -> list[Batch]:
        """Take a match; the batches that this fires, timers due by then included."""
        ...

    def next_due_ms(self) -> int | None:
        """When ``on_due`` is wanted, or None while nothing waits for time."""
        ...

    def on_due(self, at_ms: int) -> list[Batch]:
        """The batch whose timer is due at or before ``at_ms``, if any, stamped with its due time."""
        ...

    def drain(self, at_ms: int) -> list[Batch]:
        """Everything that is buffered, as one final batch; nothing when there is nothing. May be repeated."""
        ...


class _Timing(Protocol):
    """What differs between the buffering strategies: when a buffer is ripe."""

    def matched(self, at_ms: int) -> Cause | None:
        """A match entered the buffer; the cause when that fires it."""
        ...

    def due(self) -> tuple[int, Cause] | None:
        """When the buffer fires by itself, and with which cause."""
        ...

    def emptied(self) -> None:
        """The buffer was fired; the next match is the first of a new one."""
        ...


class _Immediate:
    def on_match(self, events: Sequence[Event], at_ms: int) -> list[Batch]:
        return [Batch(tuple(events), Cause.MATCH, at_ms)]

    def next_due_ms(self) -> int | None:
        return None

    def on_due(self, at_ms: int) -> list[Batch]:  # noqa: ARG002 - nothing waits
        return []

    def drain(self, at_ms: int) -> list[Batch]:  # noqa: ARG002 - nothing is kept
        return []


class _Buffered:
    """A buffer of whole matches that fires when its timing says so, or before it would be too large."""

    def __init__(self, timing: _Timing) -> None:
        self._timing = timing
        self._events: list[Event] = []
        self._bytes = 0

    def on_match(self, events: Sequence[Event], at_ms: int) -> list[Batch]:
        batches = self.on_due(at_ms)
        size = sum(map(event_bytes, events))
        too_many = len(self._events) + len(events) > MAX_BATCH_EVENTS or self._bytes + size > MAX_BATCH_BYTES
        if self._events and too_many:
            batches.append(self._fire(Cause.FULL, at_ms))
        self._events.extend(events)
        self._bytes += size
        cause = self._timing.matched(at_ms)
        if cause is not None:
            batches.append(self._fire(cause, at_ms))
        return batches

    def next_due_ms(self) -> int | None:
        due = self._timing.due() if self._events else None
        return due[0] if due else None

    def on_due(self, at_ms: int) -> list[Batch]:
        due = self._timing.due() if self._events else None
        return [self._fire(due[1], due[0])] if due and due[0] <= at_ms else []

    def drain(self, at_ms: int) -> list[Batch]:
        batches = self.on_due(at_ms)
        if self._events:
            batches.append(self._fire(Cause.DRAIN, at_ms))
        return batches

    def _fire(self, cause: Cause, at_ms: int) -> Batch:
        batch = Batch(tuple(self._events), cause, at_ms)
        self._events.clear()
        self._bytes = 0
        self._timing.emptied()
        return batch


class _Debounce:
    def __init__(self, quiet_ms: int, max_wait_ms: int | None) -> None:
        self._quiet_ms = quiet_ms
        self._max_wait_ms = max_wait_ms
        self._first_ms: int | None = None
        self._last_ms = 0

    def matched(self, at_ms: int) -> Cause | None:
        self._first_ms = at_ms if self._first_ms is None else self._first_ms
        self._last_ms = at_ms
        return None

    def due(self) -> tuple[int, Cause] | None:
        quiet_at = self._last_ms + self._quiet_ms
        if self._max_wait_ms is not None and self._first_ms is not None:
            latest = self._first_ms + self._max_wait_ms
            if latest < quiet_at:
                return latest, Cause.MAX_WAIT
        return quiet_at, Cause.QUIET

    def emptied(self) -> None:
        self._first_ms = None


class _Count:
    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._matches = 0

    def matched(self, at_ms: int) -> Cause | None:  # noqa: ARG002 - time does not matter
        self._matches += 1
        return Cause.THRESHOLD if self._matches == self._threshold else None

    def due(self) -> tuple[int, Cause] | None:
        return None

    def emptied(self) -> None:
        self._matches = 0


class _TimeWindow:
    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._grid_ms: int | None = None
        self._end_ms = 0
        self._empty = True

    def matched(self, at_ms: int) -> Cause | None:
        if self._grid_ms is None:
            self._grid_ms = at_ms
        if self._empty:
            windows = (at_ms - self._grid_ms) // self._window_ms
            self._end_ms = self._grid_ms + (windows + 1) * self._window_ms
            self._empty = False
        return None

    def due(self) -> tuple[int, Cause] | None:
        return self._end_ms, Cause.WINDOW

    def emptied(self) -> None:
        self._empty = True


def make_strategy(execution: Execution) -> Strategy:
    """A fresh state machine for one sentinel of one codon."""
    match execution:
        case ImmediateExecution():
            return _Immediate()
        case DebounceExecution():
            return _Buffered(_Debounce(execution.milliseconds, execution.max_wait_ms))
        case CountExecution():
            return _Buffered(_Count(execution.threshold))
        case TimeWindowExecution():
            return _Buffered(_TimeWindow(execution.milliseconds))
        case _:
            assert_never(execution)


def event_bytes(event: Event) -> int:
    """The length of the event's journal line, also of one that was never written."""
    if event.size_bytes:
        return event.size_bytes
    from hankwatch.events.codec import encode_line  # `validate` encodes nothing

    return len(encode_line(event))
