"""The event stream: the one place where events come into being (design "How it runs" 1-5)."""

import logging
from collections import deque
from collections.abc import Callable

import anyio
import anyio.to_thread

from hankwatch.core.clock import LATEST_MS, Clock, StreamTime, Timers
from hankwatch.core.contain import contain
from hankwatch.core.errors import InfrastructureError
from hankwatch.core.redaction import Redactor
from hankwatch.events.catalogue import PAYLOADS
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event, IdSource, format_stamp
from hankwatch.events.observers import JournalRepaired
from hankwatch.events.payload import Payload
from hankwatch.stream.bus import Bus, Listener, ListenerFailure
from hankwatch.stream.journal import Journal
from hankwatch.stream.prepared import Prepared
from hankwatch.stream.reader import JournalReader

_LOG = logging.getLogger(__name__)


def log_listener_failure(failure: ListenerFailure) -> None:
    """What happens to a listener's failure when nobody else takes it."""
    what = failure.event.type if failure.event else "a due timer"
    _LOG.error("%s failed on %s", failure.name, what, exc_info=failure.error)


class EventStream:
    """Writes events to the journal, then hands them to the listeners, all in one order.

    Everything but ``prepare`` runs on the loop's thread. Without a journal (``try``, tests) events are redacted,
    sized and numbered as if one was there. Stamps never go back, also not behind those of an earlier run
    in the same journal. Opening over a repaired journal emits ``journal.repaired``.
    """

    def __init__(
        self,
        journal: Journal | None,
        *,
        time: StreamTime,
        timers: Timers,
        redactor: Redactor,
        ids: IdSource,
        on_failure: Callable[[InfrastructureError], None],
        on_listener_failure: Callable[[ListenerFailure], None] = log_listener_failure,
    ) -> None:
        self.timers = timers
        """What waits for a stream instant; run by ``emit`` and, live, by ``run``."""
        self.closed = False
        """Whether ``emit`` does nothing any more."""
        self._journal = journal
        self._time = time
        self._redactor = redactor
        self._prepared = Prepared(redactor)
        self._ids = ids
        self._on_failure = on_failure
        self._on_listener_failure = on_listener_failure
        self._bus = Bus(on_listener_failure)
        self._undelivered: deque[Event] = deque()
        self._emitting = False
        self._stamp_ms = 0
        self._stamp: str | None = None
        self._size_bytes = 0
        self._nap: anyio.CancelScope | None = None
        self._running: anyio.CancelScope | None = None
        if journal is not None:
            self._continue(journal)

    def now_ms(self) -> int:
        """The stream instant in epoch milliseconds; inside an ``emit`` the one it stamps with."""
        return self._stamp_ms if self._emitting else max(self._stamp_ms, self._time.now_ms())

    def subscribe(self, listener: Listener, *, name: str) -> Callable[[], None]:
        """Call ``listener`` with every event from now on; returns what ends that.

        Its failures are contained and reported under ``name``.
        """
        return self._bus.subscribe(listener, name=name)

    def redact(self, text: str) -> str:
        """``text`` as it may be written anywhere: without the secrets that events are cleaned of."""
        return self._redactor.text(text)

    def emit(self, *payloads: Payload) -> tuple[Event, ...]:
        """Run what is due, write the payloads as one batch, publish them; returns the events as written.

        Inside an emit (from a listener or a timer) the payloads take the outer stamp, are written at once
        and delivered after everything written before them. Without payloads only what is due runs. On a
        closed stream nothing happens.

        Raises:
            InfrastructureError: the journal failed; the stream is closed and ``on_failure`` was told.
        """
        at_ms = self._stamp_ms if self._emitting else self._time.now_ms()
        return self._emit(at_ms, lambda: [self._event(payload) for payload in payloads])

    def prepare(self, payload: Payload) -> None:
        """Redact and encode a payload of megabytes that will be emitted soon; may be called from any thread."""
        self._prepared.add(payload)

    def emit_recorded(self, event: Event) -> Event:
        """Emit an event that happened before, with its id and stamp; returns it as written here.

        Stream time moves to its stamp. A stamp older than its predecessor's is raised to it, one beyond
        ``LATEST_MS`` lowered.

        Raises:
            InfrastructureError: as ``emit``.
        """
        self._time.advance_to(event.at_ms)
        written = self._emit(min(event.at_ms, LATEST_MS), lambda: [self._recorded(event)])
        return written[0] if written else event

    async def run(self, clock: Clock) -> None:
        """Run timers when they are due and sync the journal, until cancelled or closed. Live streams only.

        Raises:
            ExceptionGroup: of the InfrastructureError that ended it.
        """
        if self.closed:
            return
        self.timers.on_earlier_head = self._wake
        try:
            async with anyio.create_task_group() as tasks:
                self._running = tasks.cancel_scope
                tasks.start_soon(self._run_timers, clock)
                if self._journal is not None and self._journal.sync_interval_s:
                    tasks.start_soon(self._sync_regularly, clock, self._journal.sync_interval_s)
        finally:
            self.timers.on_earlier_head = self._running = None

    async def sync(self) -> None:
        """Put on disk what was emitted so far; at codon end, and regularly by ``run``.

        Raises:
            InfrastructureError: as ``emit``.
        """
        if self.closed or self._journal is None:
            return
        try:
            await anyio.to_thread.run_sync(self._journal.sync)
        except InfrastructureError as error:
            self._fail(error)
            raise

    def close(self) -> None:
        """Sync and close the journal, end ``run``; emits nothing and is safe to call twice.

        Raises:
            InfrastructureError: the last sync failed; ``on_failure`` was told.
        """
        try:
            if self._journal is not None:
                self._journal.close()
        except InfrastructureError as error:
            self._fail(error)
            raise
        finally:
            self._shut()

    def _continue(self, journal: Journal) -> None:
        """Go on behind what an earlier process has written."""
        for last in JournalReader(journal.path).last(1):
            self._set_stamp(last.at_ms)
            self._time.advance_to(last.at_ms)
        if (repaired := journal.repaired) is not None:
            self.emit(
                JournalRepaired(size_bytes=repaired.size_bytes, action=repaired.action, side_file=repaired.side_file)
            )

    def _emit(self, at_ms: int, make: Callable[[], list[Event]]) -> tuple[Event, ...]:
        if self.closed:
            return ()
        if self._emitting:
            return self._write(make())
        self._emitting = True
        try:
            self._set_stamp(max(self._stamp_ms, at_ms))
            # Each due instant is finished, deliveries included, before the next: as in replay.
            while (due_ms := self.timers.next_due_ms()) is not None and due_ms <= self._stamp_ms:
                with contain(self._report_timer):
                    self.timers.run_due(due_ms)
                self._deliver()
            written = self._write(make())
            self._deliver()
        finally:
            self._emitting = False
        return written

    def _set_stamp(self, at_ms: int) -> None:
        if at_ms != self._stamp_ms:
            self._stamp_ms = at_ms
            self._stamp = None

    def _stamp_text(self) -> str:
        if self._stamp is None:  # recorded events bring theirs along
            self._stamp = format_stamp(self._stamp_ms)
        return self._stamp

    def _event(self, payload: Payload) -> Event:
        at_ms = self._stamp_ms
        return Event(self._ids.next(at_ms), self._stamp_text(), payload.TYPE, self._prepared.data(payload), at_ms)

    def _recorded(self, event: Event) -> Event:
        at_ms = self._stamp_ms
        timestamp = event.timestamp if event.at_ms == at_ms else self._stamp_text()
        return Event(event.id, timestamp, event.type, event.data, at_ms)

    def _write(self, events: list[Event]) -> tuple[Event, ...]:
        if self.closed or not events:  # closed by a timer just now
            return ()
        lines = [self._encode(event) for event in events]
        if self._journal is None:
            for event, line in zip(events, lines, strict=True):
                self._size_bytes += len(line)
                event.cursor, event.size_bytes = self._size_bytes, len(line)
        else:
            try:
                self._journal.append_lines(events, lines)
            except InfrastructureError as error:
                self._fail(error)
                raise
        self._undelivered.extend(events)
        return tuple(events)

    def _encode(self, event: Event) -> bytes:
        if (prepared := self._prepared.line(event)) is not None:
            return prepared
        line = encode_line(event)
        if self._redactor.suspects(line):
            event.data = self._redactor.data(event.data)
            event.id = self._redactor.text(event.id)
            # A known type is a word of ours whatever else has the same letters; any other came from outside.
            if event.type not in PAYLOADS:
                event.type = self._redactor.text(event.type)
            line = encode_line(event)
        return line

    def _deliver(self) -> None:
        while self._undelivered:
            self._bus.publish(self._undelivered.popleft())

    def _report_timer(self, error: Exception) -> None:
        self._on_listener_failure(ListenerFailure("timer", None, error))

    def _fail(self, error: InfrastructureError) -> None:
        if not self.closed:
            self._shut()
            self._on_failure(error)

    def _shut(self) -> None:
        self.closed = True
        if self._running is not None:
            self._running.cancel()

    def _wake(self) -> None:
        if self._nap is not None:
            self._nap.cancel()

    async def _run_timers(self, clock: Clock) -> None:
        while not self.closed:
            self.emit()
            due_ms = self.timers.next_due_ms()
            with anyio.CancelScope() as self._nap:
                if due_ms is None:
                    await anyio.sleep_forever()
                else:
                    await clock.sleep((due_ms - self.now_ms()) / 1000)
            self._nap = None

    async def _sync_regularly(self, clock: Clock, interval_s: float) -> None:
        while True:
            await clock.sleep(interval_s)
            if self._journal is not None and self._journal.dirty:
                await self.sync()
