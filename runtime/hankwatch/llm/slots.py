"""Who may send a request now: a limited number at a time, first come first served, no provider that asked for peace.

::

    ticket = slots.ticket("anthropic")      # the call's place in the queue, kept over its retries
    async with slots.take(ticket):
        ...                                 # the request is on the wire
    slots.hold_back("anthropic", 7.0)       # it asked for 7 s: nobody starts a request to it before
"""

from bisect import insort
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.limits import within


@dataclass(order=True, slots=True)
class Ticket:
    """A call's place in the queue: drawn once, so that a retried call goes before those that came later."""

    number: int
    provider: str = field(compare=False)
    _admitted: bool = field(default=False, compare=False)
    _changed: anyio.Event = field(default_factory=anyio.Event, compare=False)


@dataclass(frozen=True, slots=True)
class SlotStatistics:
    """A moment of the slots."""

    total: int
    taken: int
    """Requests on the wire."""
    waiting: int
    """Calls that want a slot, held back ones included."""
    held_providers: tuple[str, ...]
    """Providers to which no request is started at the moment."""


class Slots:
    """``total`` slots for requests of all providers together.

    A free slot goes to the oldest ticket whose provider is not held back. Used on one event loop; the queue
    is bounded by its users, each of whom waits for one slot at a time.
    """

    def __init__(self, total: int, clock: Clock) -> None:
        self._total = total
        self._clock = clock
        self._taken = 0
        self._drawn = 0
        self._waiting: list[Ticket] = []
        self._held_until_s: dict[str, float] = {}

    def ticket(self, provider: str) -> Ticket:
        """A place behind everyone who has drawn one."""
        self._drawn += 1
        return Ticket(self._drawn, provider)

    @asynccontextmanager
    async def take(self, ticket: Ticket, *, limit_s: float | None = None) -> AsyncIterator[None]:
        """A slot for as long as the block runs.

        Raises:
            TimeoutError: There was none within ``limit_s`` (None: wait for as long as it takes).
        """
        insort(self._waiting, ticket)
        try:
            if limit_s is None:
                await self._wait(ticket)
            else:
                await within(self._clock, limit_s, partial(self._wait, ticket))
            yield
        finally:
            self._leave(ticket)

    def hold_back(self, provider: str, seconds: float) -> None:
        """Start no request to ``provider`` for that long; the longest wish stands."""
        until_s = self._clock.monotonic() + seconds
        self._held_until_s[provider] = max(until_s, self._held_until_s.get(provider, 0.0))
        for ticket in self._waiting:
            if ticket.provider == provider:
                ticket._changed.set()

    def statistics(self) -> SlotStatistics:
        held = tuple(provider for provider in self._held_until_s if self._held_s(provider) > 0)
        return SlotStatistics(self._total, self._taken, len(self._waiting), held)

    def _held_s(self, provider: str) -> float:
        return max(0.0, self._held_until_s.get(provider, 0.0) - self._clock.monotonic())

    async def _wait(self, ticket: Ticket) -> None:
        self._admit()
        while not ticket._admitted:
            ticket._changed = anyio.Event()
            if (held_s := self._held_s(ticket.provider)) > 0:
                with suppress(TimeoutError):
                    await within(self._clock, held_s, ticket._changed.wait)
            else:
                await ticket._changed.wait()
            self._admit()

    def _admit(self) -> None:
        for ticket in self._waiting[:]:
            if self._taken >= self._total:
                return
            if self._held_s(ticket.provider) <= 0:
                self._waiting.remove(ticket)
                self._taken += 1
                ticket._admitted = True
                ticket._changed.set()

    def _leave(self, ticket: Ticket) -> None:
        if not ticket._admitted:
            self._waiting.remove(ticket)
            return
        ticket._admitted = False
        self._taken -= 1
        self._admit()
