"""Time: real time for waiting, stream time for stamps and strategies, and the timers between them.

Two clocks are injected (design "How it runs" 4). *Real time* (``Clock``) paces HTTP, children and limits.
*Stream time* (``StreamTime``) is what events are stamped with and what strategies count; it never stops
and never goes back. Stream instants are whole epoch milliseconds (UTC), the precision of a stamp.
"""

import asyncio
import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import anyio


class Clock(Protocol):
    """Real time: a wall clock, a monotonic clock, and a way to wait."""

    def now(self) -> datetime:
        """The wall clock, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less yields once."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))


class VirtualClock:
    """A clock that moves only when told; for tests and replay.

    ``advance`` wakes sleepers in order of their instants (ties: in order of arrival) and lets each run
    until everything is blocked again before it goes on, so what a sleeper starts at t happens at t.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._wall = start or datetime(2000, 1, 1, tzinfo=UTC)
        self._seconds = 0.0
        self._order = 0
        self._sleepers: list[tuple[float, int, anyio.Event]] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._wall.timestamp() + self._seconds, UTC)

    def monotonic(self) -> float:
        return self._seconds

    def step_wall(self, seconds: float) -> None:
        """Move the wall clock alone, as an operator or NTP does; may be negative."""
        self._wall = datetime.fromtimestamp(self._wall.timestamp() + seconds, UTC)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        self._order += 1
        heapq.heappush(self._sleepers, (self._seconds + seconds, self._order, woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Move by ``seconds`` (>= 0), waking whoever is due on the way.

        Threads and child processes live in real time and are not waited for.
        """
        until = self._seconds + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, woken = heapq.heappop(self._sleepers)
            self._seconds = max(self._seconds, due)
            woken.set()
            await _settle()
        self._seconds = until


async def _settle() -> None:
    """Return when every other task of this loop waits for something.

    ``anyio.wait_all_tasks_blocked`` looks only every 0.1 s of real time. A callback that is about to wake a
    task belongs to no task, so quiet has to last for a few rounds.
    """
    this = asyncio.current_task()
    quiet = 0
    while quiet < 4:
        await asyncio.sleep(0)
        waiters = [getattr(task, "_fut_waiter", None) for task in asyncio.all_tasks() if task is not this]
        quiet = quiet + 1 if all(waiter is not None and not waiter.done() for waiter in waiters) else 0


EARLIEST_MS = 0
"""1970-01-01T00:00:00.000Z: an earlier stamp from outside means this instant."""
LATEST_MS = 253_370_764_799_999
"""9998-12-31T23:59:59.999Z: a later stamp from outside means this instant, so that stream time always has a
year left in which timers come due."""
LAST_STAMP_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z: no stamp can say more; stream time stands still here."""


class StreamTime:
    """Stream time: an instant that only moves forward, by the passing of time or when it is told.

    With a ``clock`` it is live: the wall clock as it stood at the beginning, plus the monotonic time since. Where
    the wall clock is set meanwhile, ahead or back, the time line goes on as it was: else all that waits would come
    due at once or never, and whatever was measured across would be wrong by that much. Without a clock it moves only
    by ``advance_to`` (replay, ``try``). It never passes what a stamp can say.
    """

    def __init__(self, clock: Clock | None = None, *, start_ms: int = 0) -> None:
        self._clock = clock
        self._base_ms = start_ms if clock is None else int(clock.now().timestamp() * 1000)
        self._began_s = 0.0 if clock is None else clock.monotonic()

    def now_ms(self) -> int:
        """The stream instant now, in epoch milliseconds."""
        passed_s = 0.0 if self._clock is None else self._clock.monotonic() - self._began_s
        return min(self._base_ms + int(passed_s * 1000), LAST_STAMP_MS)

    def advance_to(self, at_ms: int) -> None:
        """Move forward to ``at_ms``, at most to ``LATEST_MS``; an earlier instant changes nothing."""
        self._base_ms += max(0, min(at_ms, LATEST_MS) - self.now_ms())


@dataclass(slots=True, eq=False)
class Timer:
    """One pending call; ``cancel`` is idempotent and safe at any moment."""

    due_ms: int
    callback: Callable[[int], None] | None

    def cancel(self) -> None:
        self.callback = None


@dataclass(slots=True)
class Timers:
    """The heap of everything that waits for a stream instant: debounce, windows, budgets, idle limits.

    ``run_due`` calls each due timer with its own due instant, in order of (due, scheduling order); a
    timer that schedules another one due in the same span sees it run in the same call. Used only on the
    loop's thread.
    """

    on_earlier_head: Callable[[], None] | None = None
    """Called when a new timer became the earliest; the live sleeper uses it to shorten its sleep."""
    _heap: list[tuple[int, int, Timer]] = field(default_factory=list)
    _order: int = 0

    def at(self, due_ms: int, callback: Callable[[int], None]) -> Timer:
        """Call ``callback(due_ms)`` once stream time has reached ``due_ms``."""
        timer = Timer(due_ms, callback)
        self._order += 1
        earlier = not self._heap or due_ms < self._heap[0][0]
        heapq.heappush(self._heap, (due_ms, self._order, timer))
        if earlier and self.on_earlier_head is not None:
            self.on_earlier_head()
        return timer

    def next_due_ms(self) -> int | None:
        """When the earliest live timer is due, or None without one."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run_due(self, now_ms: int) -> None:
        """Run everything due at or before ``now_ms``."""
        while (due_ms := self.next_due_ms()) is not None and due_ms <= now_ms:
            _, _, timer = heapq.heappop(self._heap)
            callback, timer.callback = timer.callback, None
            assert callback is not None
            callback(due_ms)
