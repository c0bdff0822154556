"""Live streams: journals tailed into buses, each client behind a bounded mailbox (cases A24).

A client first reads the journal from its cursor at its own pace. Once it has what the tail has published, it gets a
mailbox that filters before it queues. One that falls behind finds it closed, is told so with its cursor, and goes on
from the journal when it comes back: nothing is lost, and memory does not grow with what is written.
"""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.errors import TooManyStreams
from hankwatch.core.limits import within
from hankwatch.events.envelope import Event
from hankwatch.serve.events import Wanted
from hankwatch.stream.bus import Bus, ListenerFailure, Mailbox
from hankwatch.stream.reader import JournalReader

_LOG = logging.getLogger(__name__)
MAX_STREAMS: Final = 256
MAILBOX: Final = 1_000
"""Events that may wait for one client."""
BEAT_S: Final = 15.0
"""After so long without an event a client is told how far the journal is."""
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
        self, journal: Path, after: int, wanted: Wanted, protocol: str, *, until: int | None = None
    ) -> AsyncGenerator[Batch, None]:
        """The events behind a cursor, then those that are being written; the last batch says why there is no more.

        Args:
            journal: May not be there yet.
            after: Where the client is.
            wanted: Keeps events out before they are queued.
            protocol: Under which it is counted.
            until: The cursor where the stream ends; None for no end.
        """
        self.open[protocol] += 1
        try:
            start = await anyio.to_thread.run_sync(_last_cursor, journal)
            with self._tail(journal, start) as tail:
                async with aclosing(self._follow(tail, after, wanted, until)) as batches:
                    async for batch in batches:
                        self.sent[protocol] += sum(isinstance(item, Event) for item in batch)
                        self.slow[protocol] += any(isinstance(item, Note) and item.reason == "slow" for item in batch)
                        yield batch
        except OSError as error:
            _LOG.warning("the journal %s cannot be read: %s", journal, error)
            yield [Note("closed", after, "failed")]
        finally:
            self.open[protocol] -= 1

    async def _follow(self, tail: Tail, after: int, wanted: Wanted, until: int | None) -> AsyncGenerator[Batch, None]:
        if after > tail.cursor and after > await anyio.to_thread.run_sync(_size, tail.journal):
            yield [Note("reset", 0, "this journal ends before the cursor, so it is sent from its beginning")]
            after = 0
        cursor, reader = after, JournalReader(tail.journal)
        at_end = False
        while not (at_end and cursor >= tail.cursor):
            batch = await anyio.to_thread.run_sync(_read, reader, cursor)
            at_end = not batch
            if self._closing:
                yield [Note("closed", cursor, "shutdown")]
                return
            if until is not None and any(event.cursor > until for event in batch):
                yield [*(event for event in batch if event.cursor <= until and wanted(event)), _ended(until)]
                return
            cursor = batch[-1].cursor if batch else cursor
            if found := [event for event in batch if wanted(event)]:
                yield list(found)
            if until is not None and cursor >= until:
                yield [_ended(until)]
                return
        async with aclosing(self._live(tail, cursor, wanted)) as batches:
            async for live in batches:
                yield live

    async def _live(self, tail: Tail, cursor: int, wanted: Wanted) -> AsyncGenerator[Batch, None]:
        restarts = told = tail.restarts

        def accepts(event: Event) -> bool:
            is_new = tail.restarts != restarts or event.cursor - event.size_bytes >= cursor
            return is_new and wanted(event)

        mailbox = Mailbox(MAILBOX, accepts=accepts, cursor=cursor)
        leave = tail.bus.subscribe(mailbox.offer, name="client")
        tail.mailboxes.add(mailbox)
        try:
            yield [Note("at", cursor)]
            while (batch := await self._take(mailbox, tail)) is not None:
                if tail.restarts != told:
                    told = tail.restarts
                    yield [Note("reset", 0, "the journal began anew")]
                yield batch
            slow = mailbox.statistics().closed == "full"
            yield [Note("closed", mailbox.cursor, "slow" if slow else "failed" if tail.failed else "shutdown")]
        finally:
            leave()
            tail.mailboxes.discard(mailbox)

    async def _take(self, mailbox: Mailbox, tail: Tail) -> Batch | None:
        """What waits, or that nothing does for a while; None when the mailbox was closed."""
        batch: Batch = []
        size_bytes = 0
        try:
            if not mailbox.statistics().waiting:
                with suppress(TimeoutError):
                    batch.append(await within(self.clock, BEAT_S, mailbox.__anext__))
            while len(batch) < _BATCH and size_bytes < _BATCH_BYTES and mailbox.statistics().waiting:
                event = await anext(mailbox)
                batch.append(event)
                size_bytes += event.size_bytes
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


def _say(failure: ListenerFailure) -> None:
    _LOG.error("a live stream failed: %s", failure.error)


def _ended(until: int) -> Note:
    return Note("closed", until, "ended")


def _size(journal: Path) -> int:
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
