"""What watches tell, for all open pages of the console: the store is asked once a second, however many pages there are."""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.core.errors import Forbidden, StoreFailed, WatchNotFound
from hankwatch.watches.authority import Action, Authorizer, Principal
from hankwatch.watches.signals import OVERLAP, SignalFeed, Tally, Told
from hankwatch.watches.watch import Signal

_LOG = logging.getLogger(__name__)
LOOK_S: Final = 1.0
MAILBOX: Final = 20
"""Signals that may wait for one page; what is over it is counted."""
_PAGES_A_SECOND: Final = 10
"""So many pages may ask for themselves again each second; with more of them, each does so more rarely."""
TOLD: Final = frozenset(
    {
        Signal.MET,
        Signal.CHANGED,
        Signal.IMPOSSIBLE,
        Signal.EXPIRED,
        Signal.STALLED,
        Signal.BROKEN,
        Signal.FLAPPING,
    }
)
"""What is worth interrupting a person for."""


@dataclass(slots=True, eq=False)
class Seat:
    """One open page."""

    reader: Callable[[], Principal | None]
    """Whose page it is, with what it may now; None: nobody's any more."""
    waiting: deque[Told] = field(default_factory=deque)
    """At most ``MAILBOX``, oldest first."""
    missed: int = 0
    """Signals beyond that it may know of."""

    def offer(self, told: Sequence[Told], authorizer: Authorizer) -> None:
        """Keep what it may know of."""
        reader = self.reader()
        if reader is None:
            return
        for one in told:
            if one.signal not in TOLD or not _may_read(authorizer, reader, one):
                continue
            if len(self.waiting) < MAILBOX:
                self.waiting.append(one)
            else:
                self.missed += 1

    def take(self) -> tuple[list[Told], int]:
        """What waits, and how many more there were."""
        taken = list(self.waiting), self.missed
        self.waiting.clear()
        self.missed = 0
        return taken


@dataclass(slots=True)
class Bulletin:
    """Publishes to all seats; used on the loop's thread."""

    feed: SignalFeed
    authorizer: Authorizer
    clock: Clock
    position: int = 0
    """The highest number that was published."""
    changes: int = 0
    """Grows when what pages of watches show may have changed."""
    _seen: frozenset[int] = frozenset()
    _tally: Tally = ()
    _is_stale: bool = False
    _told_s: float = float("-inf")
    _seats: set[Seat] = field(default_factory=set)
    _looking: anyio.Lock = field(default_factory=anyio.Lock)
    _taken: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Look each second while there is anybody, until cancelled."""
        while True:
            if not self._seats:
                self._taken = anyio.Event()
                await self._taken.wait()
            await self.clock.sleep(LOOK_S)
            await self._look()

    @asynccontextmanager
    async def seat(self, reader: Callable[[], Principal | None], after: int | None = None) -> AsyncIterator[Seat]:
        """Told from now on, or what came behind the number that it was told last."""
        await self._look()
        seat, until = Seat(reader), self.position
        self._seats.add(seat)
        self._taken.set()
        try:
            if after is not None and after < until:
                numbers = await anyio.to_thread.run_sync(self.feed.behind, after)
                numbers = [number for number in numbers if number <= until]
                seat.offer(await anyio.to_thread.run_sync(self.feed.read, numbers), self.authorizer)
            yield seat
        finally:
            self._seats.discard(seat)

    async def _look(self) -> None:
        async with self._looking:
            try:
                numbers, told, tally = await anyio.to_thread.run_sync(self._read)
            except StoreFailed as error:
                _LOG.warning("what watches tell is not known: %s", error)
            else:
                self._publish(numbers, told, tally)

    def _publish(self, numbers: list[int], told: list[Told], tally: Tally) -> None:
        self._is_stale |= tally != self._tally or not self._seen.issuperset(numbers)
        self._seen, self._tally = frozenset(numbers), tally
        self.position = max([self.position, *numbers])
        for seat in self._seats:
            seat.offer(told, self.authorizer)
        now_s = self.clock.monotonic()
        if self._is_stale and now_s - self._told_s >= len(self._seats) / _PAGES_A_SECOND:
            self.changes, self._is_stale, self._told_s = self.changes + 1, False, now_s

    def _read(self) -> tuple[list[int], list[Told], Tally]:
        numbers = self.feed.behind(self.position - OVERLAP)
        fresh = [number for number in numbers if number not in self._seen] if self._seats else []
        return numbers, self.feed.read(fresh), self.feed.tally()


def _may_read(authorizer: Authorizer, reader: Principal, told: Told) -> bool:
    try:
        authorizer.check(reader, Action.READ, told.watch)
    except (Forbidden, WatchNotFound):
        return False
    return True
