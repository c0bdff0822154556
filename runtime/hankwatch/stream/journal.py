"""The journal: the only truth of a run, one event per line, one write per batch (design "How it runs" 1-3)."""

import errno
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NoReturn, Self

from hankwatch.core.errors import JournalWriteError
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event
from hankwatch.stream.lock import OwnerLock, leads_to, lock_path, open_locked
from hankwatch.stream.repair import Repair, repair_tail

SYNC_INTERVAL_S = 1.0
"""Default of ``journal.sync_interval_s``."""


class Journal:
    """An append-only JSONL file with one writer.

    Appended means: in the operating system, so it survives ``kill -9`` of this process. Synced means: on
    the disk. After a failed write or sync the file ends with its last whole line and the journal takes no
    more. A file that was deleted or replaced under its writer counts as a failed sync: what nobody can read
    is not written. Append from one thread; ``sync`` may be called from another one.
    """

    def __init__(
        self,
        path: Path,
        fd: int,
        lock: OwnerLock,
        *,
        repaired: Repair | None = None,
        sync_interval_s: float | None = SYNC_INTERVAL_S,
    ) -> None:
        self.path = path
        self.repaired = repaired
        """What opening had to mend, or None."""
        self.sync_interval_s = sync_interval_s
        """Seconds between syncs of a dirty journal; 0 = with every append, None = never."""
        self.size_bytes = os.fstat(fd).st_size
        """Length of the file, which is the cursor of its last event."""
        self._fd = fd
        self._lock = lock
        self._synced_bytes = self.size_bytes
        self._sync_each = sync_interval_s == 0
        self._descriptor_use = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, run: str = "", sync_interval_s: float | None = SYNC_INTERVAL_S) -> Self:
        """Take the owner lock, create and lock the file if needed, and repair a torn tail.

        Raises:
            JournalLocked: another process writes here.
            JournalWriteError: the file cannot be created, read or repaired.
        """
        with ExitStack() as undo:
            lock = OwnerLock.acquire(lock_path(path), run=run)
            undo.callback(lock.release)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                fd = open_locked(path, os.O_APPEND)
                undo.callback(os.close, fd)
                repaired = repair_tail(path, fd)
            except OSError as error:
                raise JournalWriteError(path, error.strerror or str(error)) from error
            journal = cls(path, fd, lock, repaired=repaired, sync_interval_s=sync_interval_s)
            undo.pop_all()
        return journal

    def name_run(self, run: str) -> None:
        """Let the lock name another run of this process; a disk that cannot take the name keeps the old one."""
        with suppress(OSError):
            self._lock.name_run(run)

    def name_port(self, port: int) -> None:
        """Let the lock say where this process serves its run; a disk that cannot take it leaves it out."""
        with suppress(OSError):
            self._lock.name_port(port)

    @property
    def dirty(self) -> bool:
        """Whether something appended still waits for a sync."""
        return self.sync_interval_s is not None and self._synced_bytes < self.size_bytes

    def append(self, events: Sequence[Event]) -> None:
        """Write the events as one buffer; sets each one's ``cursor`` and ``size_bytes``.

        Raises:
            JournalWriteError: the write or (interval 0) the sync failed.
        """
        if len(events) != 1:
            self.append_lines(events, [encode_line(event) for event in events])
            return
        # Most appends are of one event: without a list, a loop and a further call it costs half.
        event = events[0]
        line = encode_line(event)
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            self._fail(error)
        event.size_bytes = size = len(line)
        if written != size:
            self._write_rest(line, written)
        event.cursor = self.size_bytes = self.size_bytes + size
        if self._sync_each:
            self.sync()

    def append_lines(self, events: Sequence[Event], lines: Sequence[bytes]) -> None:
        """``append`` for a caller that has the events' encoded lines already."""
        payload = b"".join(lines)
        try:
            written = os.write(self._fd, payload)
        except OSError as error:
            self._fail(error)
        if written != len(payload):
            self._write_rest(payload, written)
        cursor = self.size_bytes
        for event, line in zip(events, lines, strict=True):
            event.size_bytes = size = len(line)
            event.cursor = cursor = cursor + size
        self.size_bytes = cursor
        if self._sync_each:
            self.sync()

    def sync(self) -> None:
        """Put on disk what was appended before the call; with interval None only look that the file is there.

        Raises:
            JournalWriteError: the disk refused, or the file is gone; the journal takes no more.
        """
        with self._descriptor_use:
            if self._fd < 0:
                return
            # Taken first: what is appended while the disk works waits for the next sync.
            size_bytes = self.size_bytes
            try:
                self._require_named()
                if not self.dirty:
                    return
                os.fdatasync(self._fd)
            except OSError as error:
                failure = error
            else:
                self._synced_bytes = size_bytes
                return
        self._fail(failure)

    def close(self) -> None:
        """Sync, close and release the lock; safe to call twice.

        Raises:
            JournalWriteError: the last sync failed, or the file is gone; the lock is released all the same.
        """
        try:
            self.sync()
        finally:
            self._close_file()
            self._lock.release()

    def _require_named(self) -> None:
        if not leads_to(self.path, self._fd):
            raise OSError(errno.ENOENT, "it was deleted or replaced while in use")

    def _write_rest(self, payload: bytes, written: int) -> None:
        """Continue a short write; what cannot be continued is cut to whole lines."""
        try:
            while written < len(payload):
                count = os.write(self._fd, memoryview(payload)[written:])
                if count == 0:
                    raise OSError("the file takes no more bytes")  # noqa: TRY301 - the disk's way of saying no
                written += count
        except OSError as error:
            self.size_bytes += payload.rfind(b"\n", 0, written) + 1
            # When the disk refuses even this, the next open repairs the tail.
            with suppress(OSError):
                os.ftruncate(self._fd, self.size_bytes)
            self._fail(error)

    def _fail(self, error: OSError) -> NoReturn:
        self._close_file()
        failure = JournalWriteError(self.path, error.strerror or str(error))
        if error.errno == errno.ENOENT:
            failure.hint = "find what deleted or moved it: nothing but hankwatch may touch its managed folder"
        raise failure from error

    def _close_file(self) -> None:
        with self._descriptor_use:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
