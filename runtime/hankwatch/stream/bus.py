"""Fan-out of written events: listeners in order, each contained; mailboxes for slow readers."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

import anyio

from hankwatch.core.contain import contain
from hankwatch.events.envelope import Event

Listener = Callable[[Event], None]
"""Takes every event, in journal order, on the loop's thread. Must not wait."""


@dataclass(frozen=True, slots=True)
class ListenerFailure:
    """A listener (or timer) that raised; it stays subscribed and the others saw the event."""

    name: str
    """The name it subscribed with."""
    event: Event | None
    """What it was given; None for a timer."""
    error: Exception


class _Subscription:
    __slots__ = ("listener", "name")

    def __init__(self, name: str, listener: Listener) -> None:
        self.name = name
        self.listener = listener


class Bus:
    """Calls its listeners in the order they subscribed.

    A failure of one is handed to ``report`` (which may rate-limit, count, unsubscribe; must not raise) and
    the next one is called; only infrastructure failures and cancellation pass.
    """

    def __init__(self, report: Callable[[ListenerFailure], None]) -> None:
        self._report = report
        self._subscriptions: tuple[_Subscription, ...] = ()

    def subscribe(self, listener: Listener, *, name: str) -> Callable[[], None]:
        """Add a listener; returns what removes it again (at once, also in the middle of a delivery)."""
        subscription = _Subscription(name, listener)
        self._subscriptions = (*self._subscriptions, subscription)

        def unsubscribe() -> None:
            self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)
            subscription.listener = _ignore

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Hand the event to everyone subscribed now."""
        subscriptions = self._subscriptions
        rest = iter(subscriptions)
        current: _Subscription

        def report(error: Exception) -> None:
            self._report(ListenerFailure(current.name, event, error))

        # The iterator outlives a failure, so containing costs once per event and not once per listener.
        done = False
        while not done:
            with contain(report):
                for current in rest:
                    current.listener(event)
                done = True


def _ignore(_event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    """Counters of one mailbox."""

    capacity: int
    """Most events that may wait."""
    waiting: int
    """Events that wait now."""
    filtered: int
    """Events its filter kept out."""
    delivered: int
    """Events its reader has taken."""
    closed: Literal["full", "left"] | None
    """Why it takes no more: its reader was too slow, or left; None while open."""


class Mailbox:
    """A bounded queue between the bus and one reader that may be slow (bugs.md A24's situation).

    ``offer`` is the listener. It filters before it queues and never waits; when the queue is full the
    mailbox closes, forgets what waited and ends the reader's iteration. Nothing is lost by that: the reader
    goes on from the journal, after ``cursor``.
    """

    def __init__(self, capacity: int, *, accepts: Callable[[Event], bool] | None = None, cursor: int = 0) -> None:
        self.cursor = cursor
        """Cursor of the last event the reader has taken; where it resumes."""
        self._capacity = capacity
        self._accepts = accepts
        self._waiting: deque[Event] = deque()
        self._filtered = 0
        self._delivered = 0
        self._closed: Literal["full", "left"] | None = None
        self._changed = anyio.Event()

    def offer(self, event: Event) -> None:
        """Queue the event if the filter wants it; subscribe this."""
        if self._closed is not None:
            return
        if self._accepts is not None and not self._accepts(event):
            self._filtered += 1
        elif len(self._waiting) < self._capacity:
            self._waiting.append(event)
            self._changed.set()
        else:
            self._close("full")

    def close(self) -> None:
        """End the reader's iteration; whoever subscribed ``offer`` unsubscribes it."""
        if self._closed is None:
            self._close("left")

    def statistics(self) -> MailboxStatistics:
        """The counters now."""
        return MailboxStatistics(self._capacity, len(self._waiting), self._filtered, self._delivered, self._closed)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._closed is not None:
                raise StopAsyncIteration
            self._changed = anyio.Event()
            await self._changed.wait()
        event = self._waiting.popleft()
        self._delivered += 1
        self.cursor = event.cursor
        return event

    def _close(self, reason: Literal["full", "left"]) -> None:
        self._closed = reason
        self._waiting.clear()
        self._changed.set()
