"""Live streams: journals tailed into buses, each client behind a bounded mailbox (cases A24).

A client first reads the journal from its cursor at its own pace. Once it has what the tail has published, it gets a
mailbox that filters before it queues. When that overflows in a burst, the client reads the journal again; one that took
too long to accept what it was sent is closed, told its cursor, and goes on from the journal when it comes back. Nothing
is lost, and memory does not grow with what is written.
"""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.limits import within
from hankwatch.core.request_errors import TooManyStreams
from hankwatch.events.envelope import Event
from hankwatch.stream.bus import Bus, ListenerFailure, Mailbox
from hankwatch.stream.reader import JournalReader

_LOG = logging.getLogger(__name__)
MAX_STREAMS: Final = 256
MAILBOX: Final = 1_000
"""Events that may wait for one client."""
SLOW_S: Final = 1.0
"""A client whose mailbox overflows while a batch takes it so long is closed."""
BEAT_S: Final = 15.0
"""After so long without an event a client is told how far the journal is."""
_LOOK_S: Final = 0.02
_BATCH: Final = 200
"""Events that are read or sent at a time."""
_BATCH_BYTES: Final = 256 * 1024
"""The same in bytes of the journal, but for a single event that is larger."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the stream itself."""

    kind: Literal["at", "reset", "closed"]
    """``at``: nothing happened so far. ``reset``: what comes is not behind what was sent. ``closed``: the last word."""
    cursor: int
    """Where to go on."""
    reason: str = ""
    """For what was closed ``slow``, ``ended``, ``failed``, ``revoked`` or ``shutdown``; else words."""


Batch = list[Event | Note]
Accepts = Callable[[Event], bool]
"""Whether a client is sent an event; asked once for each, in journal order."""


@dataclass(slots=True, eq=False)
class Tail:
    """Follows one journal for all of its clients; on the loop's thread."""

    journal: Path
    clock: Clock
    cursor: int
    """How far it has published."""
    clients: int = 0
    restarts: int = 0
    """How often the journal began anew."""
    mailboxes: set[Mailbox] = field(default_factory=set)
    failed: bool = False
    """The journal cannot be read."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    bus: Bus = field(default_factory=lambda: Bus(_say))

    async def run(self) -> None:
        """Publish what is written, until cancelled."""
        with self.scope, contain(self._fail):
            async with aclosing(JournalReader(self.journal).tail(self.cursor, clock=self.clock)) as events:
                async for event in events:
                    self.restarts += event.cursor <= self.cursor
                    self.cursor = event.cursor
                    self.bus.publish(event)

    def close(self) -> None:
        """End what all clients wait for."""
        for mailbox in self.mailboxes:
            mailbox.close()

    def _fail(self, error: Exception) -> None:
        _LOG.warning("the journal %s cannot be followed: %s", self.journal, error)
        self.failed = True
        self.close()


@dataclass(slots=True)
class _Seat:
    """One client of a tail."""

    tail: Tail
    wanted: Accepts
    until: int | None
    cursor: int
    """What it has."""
    over: bool = False

    def accepts(self) -> Callable[[Event], bool]:
        """Keeps out what is not wanted, and what it has read itself."""
        cursor, restarts = self.cursor, self.tail.restarts

        def accept(event: Event) -> bool:
            is_new = self.tail.restarts != restarts or event.cursor - event.size_bytes >= cursor
            return is_new and self.wanted(event)

        return accept

    def close(self, reason: str) -> Batch:
        """The last word to it."""
        self.over = True
        return [Note("closed", self.cursor, reason)]


@dataclass(slots=True)
class Streams:
    """All live streams of a server; used on the loop's thread."""

    clock: Clock
    limit: int = MAX_STREAMS
    open: Counter[str] = field(default_factory=Counter)
    """Clients now, by protocol."""
    sent: Counter[str] = field(default_factory=Counter)
    """Events, by protocol."""
    slow: Counter[str] = field(default_factory=Counter)
    """Clients that were closed because they were too slow, by protocol."""
    _tails: dict[Path, Tail] = field(default_factory=dict)
    _tasks: TaskGroup | None = None
    _closing: bool = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Streams can be opened while this is entered."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self.close()
            self._tasks.cancel_scope.cancel()

    def close(self) -> None:
        """Let every stream end."""
        self._closing = True
        for tail in self._tails.values():
            tail.close()

    async def finish(self, within_s: float) -> None:
        """Let clients be sent what their journals have now, as far as there is time for it."""
        until_s = self.clock.monotonic() + within_s
        while self.clock.monotonic() < until_s and (self.waiting or await anyio.to_thread.run_sync(self._is_behind)):
            await self.clock.sleep(_LOOK_S)

    def _is_behind(self) -> bool:
        return any(tail.cursor < size_of(tail.journal) for tail in tuple(self._tails.values()))

    @property
    def closing(self) -> bool:
        """The server ends, and every stream with it."""
        return self._closing

    @contextmanager
    def counted(self, protocol: str) -> Iterator[None]:
        """One more client of that protocol is there while this is entered."""
        self.open[protocol] += 1
        try:
            yield
        finally:
            self.open[protocol] -= 1

    @property
    def waiting(self) -> int:
        """Events in all mailboxes."""
        return sum(mailbox.statistics().waiting for tail in self._tails.values() for mailbox in tail.mailboxes)

    def require_room(self) -> None:
        """Refuse one more stream than may be open.

        Raises:
            TooManyStreams: there is no room.
        """
        if self.open.total() >= self.limit:
            raise TooManyStreams(self.limit)

    async def follow(
        self, journal: Path, after: int, wanted: Accepts, protocol: str, *, until: int | None = None
    ) -> AsyncGenerator[Batch, None]:
        """The events behind a cursor, then those that are being written; the last batch says why there is no more.

        Args:
            journal: May not be there yet.
            after: Where the client is.
            wanted: Keeps events out before they are queued.
            protocol: Under which it is counted.
            until: The cursor where the stream ends; None for no end.
        """
        try:
            with self.counted(protocol):
                start = await anyio.to_thread.run_sync(_last_cursor, journal)
                with self._tail(journal, start) as tail:
                    async with aclosing(self._follow(tail, after, wanted, until)) as batches:
                        async for batch in batches:
                            self.sent[protocol] += sum(isinstance(item, Event) for item in batch)
                            is_slow = any(isinstance(item, Note) and item.reason == "slow" for item in batch)
                            self.slow[protocol] += is_slow
                            yield batch
        except OSError as error:
            _LOG.warning("the journal %s cannot be read: %s", journal, error)
            yield [Note("closed", after, "failed")]

    async def _follow(self, tail: Tail, after: int, wanted: Accepts, until: int | None) -> AsyncGenerator[Batch, None]:
        if after > tail.cursor and after > await anyio.to_thread.run_sync(size_of, tail.journal):
            yield [Note("reset", 0, "this journal ends before the cursor, so it is sent from its beginning")]
            after = 0
        seat = _Seat(tail, wanted, until, after)
        while True:
            async with aclosing(self._catch_up(seat)) as read:
                async for batch in read:
                    yield batch
            if seat.over:
                return
            async with aclosing(self._live(seat)) as live:
                async for batch in live:
                    yield batch
            if seat.over:
                return

    async def _catch_up(self, seat: "_Seat") -> AsyncGenerator[Batch, None]:
        """What the journal has behind the client's cursor, up to where the tail is."""
        reader, until, at_end = JournalReader(seat.tail.journal), seat.until, False
        while not (at_end and seat.cursor >= seat.tail.cursor):
            batch = await anyio.to_thread.run_sync(_read, reader, seat.cursor)
            at_end = not batch
            if self._closing:
                yield seat.close("shutdown")
                return
            found = [event for event in batch if (until is None or event.cursor <= until) and seat.wanted(event)]
            seat.cursor = batch[-1].cursor if batch else seat.cursor
            if found:
                yield list(found)
            if until is not None and seat.cursor >= until:
                seat.cursor = until
                yield seat.close("ended")
                return

    async def _live(self, seat: "_Seat") -> AsyncGenerator[Batch, None]:
        """What the tail publishes, until the mailbox is closed or overflows."""
        tail, restarts = seat.tail, seat.tail.restarts
        mailbox = Mailbox(MAILBOX, accepts=seat.accepts(), cursor=seat.cursor)
        leave = tail.bus.subscribe(mailbox.offer, name="client")
        tail.mailboxes.add(mailbox)
        took_s = 0.0
        try:
            yield [Note("at", seat.cursor)]
            while (batch := await self._take(mailbox, tail)) is not None:
                restarts += sum(isinstance(item, Note) and item.kind == "reset" for item in batch)
                began_s = self.clock.monotonic()
                yield batch
                took_s = self.clock.monotonic() - began_s
        finally:
            leave()
            tail.mailboxes.discard(mailbox)
        seat.cursor = mailbox.cursor
        if mailbox.statistics().closed != "full":
            yield seat.close("failed" if tail.failed else "shutdown")
        elif took_s >= SLOW_S:
            yield seat.close("slow")
        elif tail.restarts != restarts:  # what was forgotten would have told it
            seat.cursor = 0
            yield [_anew()]

    async def _take(self, mailbox: Mailbox, tail: Tail) -> Batch | None:
        """What waits, or that nothing does for a while; None when the mailbox was closed."""
        batch: Batch = []
        size_bytes = 0
        try:
            if not mailbox.statistics().waiting:
                with suppress(TimeoutError):
                    size_bytes += _put(batch, mailbox.cursor, await within(self.clock, BEAT_S, mailbox.__anext__))
            while len(batch) < _BATCH and size_bytes < _BATCH_BYTES and mailbox.statistics().waiting:
                size_bytes += _put(batch, mailbox.cursor, await anext(mailbox))
        except StopAsyncIteration:
            return batch or None
        return batch or [Note("at", tail.cursor)]

    @contextmanager
    def _tail(self, journal: Path, start: int) -> Iterator[Tail]:
        """The one that follows a journal, for as long as it has clients."""
        tail = self._tails.get(journal)
        if tail is None:
            assert self._tasks is not None
            tail = self._tails[journal] = Tail(journal, self.clock, start)
            self._tasks.start_soon(tail.run)
        tail.clients += 1
        try:
            yield tail
        finally:
            tail.clients -= 1
            if not tail.clients:
                del self._tails[journal]
                tail.scope.cancel()


def _put(batch: Batch, cursor: int, event: Event) -> int:
    """Add an event that follows one at ``cursor``; its size in bytes."""
    if event.cursor <= cursor:
        batch.append(_anew())
    batch.append(event)
    return event.size_bytes


def _anew() -> Note:
    return Note("reset", 0, "the journal began anew")


def _say(failure: ListenerFailure) -> None:
    _LOG.error("a live stream failed: %s", failure.error)


def size_of(journal: Path) -> int:
    """Where a journal ends now; 0 before its first event."""
    try:
        return journal.stat().st_size
    except FileNotFoundError:
        return 0


def _last_cursor(journal: Path) -> int:
    """Where its last whole event ends."""
    try:
        return next((event.cursor for event in JournalReader(journal).last(1)), 0)
    except FileNotFoundError:
        return 0


def _read(reader: JournalReader, after: int) -> list[Event]:
    """The next few events; none at the end."""
    batch, size_bytes = list[Event](), 0
    with suppress(FileNotFoundError):
        for event in reader.read(after):
            batch.append(event)
            size_bytes += event.size_bytes
            if len(batch) >= _BATCH or size_bytes >= _BATCH_BYTES:
                break
    return batch
