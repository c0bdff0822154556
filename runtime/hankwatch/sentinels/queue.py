"""What waits for one sentinel: first in, first out, bounded, and every drop counted (spec sentinels 5)."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from hankwatch.events.envelope import Event
from hankwatch.events.observers import TriggerCause
from hankwatch.sentinels.strategies import Batch

MAX_WAITING_TRIGGERS = 100
MAX_WAITING_EVENTS = 10_000
"""Events of waiting triggers and of the strategy's buffer together."""
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Journal bytes of those events."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One batch on its way to the model."""

    number: int
    """1, 2, … in the order the batches became due; a dropped trigger keeps its number."""
    batch: Batch
    size_bytes: int
    """Journal bytes of its events."""

    @property
    def cause(self) -> TriggerCause:
        """Why it fired."""
        return self.batch.cause.value

    @property
    def event_ids(self) -> list[str]:
        """The ids of its events, in order."""
        return [event.id for event in self.batch.events]


@dataclass(slots=True)
class Dropped:
    """What one stretch of overflow cost: from the first drop until nothing waits any more."""

    triggers: int = 0
    events: int = 0
    trigger_numbers: list[int] = field(default_factory=list)
    """The first 100 of them."""

    def add(self, trigger: Trigger) -> None:
        self.triggers += 1
        self.events += len(trigger.batch.events)
        if len(self.trigger_numbers) < MAX_WAITING_TRIGGERS:
            self.trigger_numbers.append(trigger.number)


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """A queue at one moment."""

    waiting_triggers: int
    waiting_events: int
    buffered_events: int
    """Matched, but not yet a trigger: still in the strategy's buffer."""
    waiting_bytes: int
    """Journal bytes of waiting and buffered events."""
    dropped_triggers: int
    """Since the load."""
    dropped_events: int


class TriggerQueue:
    """One sentinel's waiting triggers. When full, the oldest go until the new one fits.

    Matched events are counted from the moment they match (``hold``), so a strategy's buffer and the
    triggers share one bound. A trigger that is too big by itself is taken when nothing else waits.
    Used only on the loop's thread; nothing here waits.
    """

    def __init__(self) -> None:
        self._waiting: deque[Trigger] = deque()
        self._numbers = 0
        self._waiting_events = 0
        self._buffered_events = 0
        self._bytes = 0
        self._episode: Dropped | None = None
        self._dropped = Dropped()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def buffered_events(self) -> int:
        """Events that matched and wait in the strategy's buffer."""
        return self._buffered_events

    @property
    def numbered(self) -> int:
        """Triggers made so far, dropped ones included."""
        return self._numbers

    @property
    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            waiting_triggers=len(self._waiting),
            waiting_events=self._waiting_events,
            buffered_events=self._buffered_events,
            waiting_bytes=self._bytes,
            dropped_triggers=self._dropped.triggers,
            dropped_events=self._dropped.events,
        )

    def hold(self, events: Iterable[Event]) -> list[Trigger]:
        """Count a match's events as buffered; what was dropped to make room, oldest first."""
        for event in events:
            self._buffered_events += 1
            self._bytes += event.size_bytes
        return self._make_room(MAX_WAITING_TRIGGERS)

    def put(self, batch: Batch) -> list[Trigger]:
        """Queue a batch of held events; what was dropped to make room, oldest first."""
        dropped = self._make_room(MAX_WAITING_TRIGGERS - 1)
        self._numbers += 1
        self._waiting.append(Trigger(self._numbers, batch, sum(event.size_bytes for event in batch.events)))
        self._waiting_events += len(batch.events)
        self._buffered_events -= len(batch.events)
        return dropped

    def take(self) -> Trigger | None:
        """The oldest waiting trigger, or None."""
        if not self._waiting:
            return None
        trigger = self._waiting.popleft()
        self._waiting_events -= len(trigger.batch.events)
        self._bytes -= trigger.size_bytes
        return trigger

    def clear(self) -> list[Trigger]:
        """Everything that waited, oldest first; the queue is empty afterwards. Not counted as dropped."""
        cleared = list(iter(self.take, None))
        return [trigger for trigger in cleared if trigger is not None]

    def end_episode(self) -> Dropped | None:
        """What the overflow since the last call cost, once; None when nothing was dropped."""
        episode, self._episode = self._episode, None
        return episode

    def _make_room(self, max_triggers: int) -> list[Trigger]:
        dropped: list[Trigger] = []
        while self._waiting and (
            len(self._waiting) > max_triggers
            or self._waiting_events + self._buffered_events > MAX_WAITING_EVENTS
            or self._bytes > MAX_WAITING_BYTES
        ):
            trigger = self.take()
            assert trigger is not None
            self._episode = self._episode or Dropped()
            self._episode.add(trigger)
            self._dropped.add(trigger)
            dropped.append(trigger)
        return dropped
