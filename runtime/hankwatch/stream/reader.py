"""Reading a journal by byte cursor: forwards, the last few, and following another process's file.

A cursor is the offset where an event's line ends (design "How it runs" 2). Lines end at a line feed
only; bad ones are skipped and counted wherever they are; a BOM at the beginning and CRLF are accepted.
"""

import errno
import gzip
import os
import zlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from hankwatch.core.clock import Clock
from hankwatch.core.errors import BadLine, UsageError
from hankwatch.core.files import reading
from hankwatch.events.codec import decode_line
from hankwatch.events.envelope import Event
from hankwatch.stream.blocks import blocks, blocks_backwards, line_begin, lines_of
from hankwatch.stream.follow import FollowedFile
from hankwatch.stream.journal_lines import journal_lines

POLL_S = 0.1
"""How often ``tail`` looks for more."""
_OWN = b'{"id":"'
_GZIP = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 20
_UNPACKED_BYTES = 256 * 1024 * 1024
"""Of a compressed journal, its beginning, which ``search`` looks through."""
_LAST_CURSOR = 2**53 - 1
"""The last one that every JSON reader takes exactly; eight petabytes."""


def require_cursor(cursor: int) -> None:
    """Refuse what can be no offset in a file.

    Raises:
        UsageError: it is negative, or longer than any journal.
    """
    if not 0 <= cursor <= _LAST_CURSOR:
        raise UsageError(f"{cursor} is no cursor", hint="cursors come from `hankwatch tail --json`")


def is_gzipped(path: Path) -> bool:
    """Whether the file begins as a gzip does, whatever it is called.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with reading(path) as file:
        return file.read(len(_GZIP)) == _GZIP


class JournalReader:
    """Reads one journal file, plain or (all but ``tail``) gzipped. Takes no lock.

    The counters add up over all calls on this object.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bad_lines = 0
        """Lines that are no event."""
        self.flags: Counter[str] = Counter()
        """How often tolerant reading had to help, by the flags of ``Decoded``."""
        self.position = 0
        """Where the last whole line ends that ``read`` has looked at, an event or not: reading on from here counts
        nothing twice."""
        self.restarts = 0
        """How often ``tail`` found the file replaced or truncated and began anew: a possible gap."""

    def read(self, after: int = 0, limit: int | None = None, types: Collection[str] | None = None) -> Iterator[Event]:
        """The events behind cursor ``after`` in order, at most ``limit``, only ``types`` when given.

        A last line without newline counts when it is a whole event; a torn one is left out, uncounted.

        Raises:
            FileNotFoundError: there is no such journal.
            UsageError: ``after`` is no cursor of any file.
        """
        require_cursor(after)
        with self._open() as file:
            status = os.fstat(file.fileno())
            received_ms = status.st_mtime_ns // 1_000_000
            if after > status.st_size and not isinstance(file, gzip.GzipFile):
                return  # file systems refuse to seek far behind the end
            file.seek(after)
            cursor, count = after, 0
            for line, size_bytes in journal_lines(file):
                if limit is not None and count >= limit:
                    return
                cursor += size_bytes
                if line.endswith(b"\n"):
                    self.position = cursor
                event = self._decode(line, cursor, received_ms)
                if event is not None and (types is None or event.type in types):
                    count += 1
                    yield event

    def find(self, ids: Collection[str]) -> Iterator[Event]:
        """The events of these ids in order, reading into no others; counts nothing.

        Raises:
            FileNotFoundError: there is no such journal.
        """
        # As this runtime writes them; a line that begins otherwise has to be read to know its id.
        wanted = {b'{"id":"%s"' % event_id.encode("utf-8", "surrogatepass") for event_id in ids}
        with self._open() as file:
            received_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            cursor = 0
            for line, size_bytes in journal_lines(file):
                cursor += size_bytes
                if line.startswith(_OWN) and line[: line.find(b'"', len(_OWN)) + 1] not in wanted:
                    continue
                with suppress(BadLine):
                    event = decode_line(line, received_ms=received_ms).event
                    if event.id in ids:
                        event.size_bytes, event.cursor = len(line), cursor
                        yield event

    def search(
        self, may_hold: Callable[[bytes], bool], *, after: int = 0, until: int | None = None, backwards: bool = False
    ) -> Iterator[Event]:
        """The events of a stretch that may be wanted; only their lines are looked into.

        Args:
            may_hold: Whether one line, or any of many whole ones, may be one that is wanted.
            after: Only what ends behind this offset.
            until: Only what ends there or before; None for the end.
            backwards: The last one first, reading no more than asked for.

        Raises:
            FileNotFoundError: there is no such journal.
            UsageError: ``after`` or ``until`` is no offset in any file.
        """
        require_cursor(after)
        require_cursor(until or 0)
        received_ms = self.path.stat().st_mtime_ns // 1_000_000
        with self._plain() as file:
            fd, size_bytes = file.fileno(), os.fstat(file.fileno()).st_size
            end = size_bytes if until is None else min(until, size_bytes)
            is_cut = 0 < end < size_bytes and os.pread(fd, 1, end - 1) != b"\n"
            found = blocks_backwards(fd, end) if backwards else blocks(fd, line_begin(fd, min(after, end)), end)
            for block, block_end in found:
                if block_end <= after:
                    return
                if not may_hold(block):
                    continue
                lines = lines_of(block, block_end)
                for line, cursor in lines if backwards else reversed([*lines]):
                    if cursor > after and not (is_cut and cursor == end) and may_hold(line):
                        event = self._decode(line, cursor, received_ms)
                        if event is not None:
                            yield event

    def size_bytes(self) -> int:
        """Where ``search`` ends; of a compressed journal in bytes of what is in it.

        Raises:
            OSError: it cannot be read.
        """
        with self._plain() as file:
            return os.fstat(file.fileno()).st_size

    def last(self, n: int) -> list[Event]:
        """The last ``n`` events, oldest first; reads backwards and no more than needed.

        Raises:
            FileNotFoundError: there is no such journal.
        """
        if is_gzipped(self.path):
            return list(deque(self.read(), maxlen=n))
        return list(islice(self.search(lambda _: True, backwards=True), n))[::-1]

    async def tail(
        self, after: int = 0, *, clock: Clock, types: Collection[str] | None = None
    ) -> AsyncGenerator[Event, None]:
        """The events behind ``after`` and then those that are being written, for as long as asked.

        Waits for the file to appear; an unfinished line is not returned before its newline is there. A
        file that was truncated or replaced is read to its end where that is possible, then the new one
        from its beginning; ``restarts`` counts that.

        Raises:
            UsageError: ``after`` is no cursor of any file.
        """
        require_cursor(after)
        file = FollowedFile(self.path, after)
        try:
            while True:
                for line, cursor in file.lines():
                    event = self._decode(line, cursor, _epoch_ms(clock.now()))
                    if event is not None and (types is None or event.type in types):
                        yield event
                self.restarts += file.restarted
                # With more to read this only lets others run.
                await clock.sleep(0 if file.has_more else POLL_S)
        finally:
            file.close()

    @contextmanager
    def _open(self) -> Iterator[BinaryIO | gzip.GzipFile]:
        with reading(self.path) as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            try:
                yield gzip.GzipFile(fileobj=file) if packed else file
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise OSError(errno.EIO, f"Damaged gzip: {error}", str(self.path)) from error

    @contextmanager
    def _plain(self) -> Iterator[BinaryIO]:
        """What the journal holds, as a file that can be read from anywhere; a damaged gzip up to its damage."""
        with self._open() as file:
            if not isinstance(file, gzip.GzipFile):
                yield file
                return
            with TemporaryFile() as unpacked:
                with suppress(EOFError, zlib.error, gzip.BadGzipFile):
                    while unpacked.tell() < _UNPACKED_BYTES and (chunk := file.read1(_CHUNK_BYTES)):
                        unpacked.write(chunk)
                unpacked.flush()
                yield unpacked

    def _decode(self, line: bytes, cursor: int, received_ms: int) -> Event | None:
        """The event of a line that ends at ``cursor``, or None."""
        if not line.strip():
            return None
        try:
            decoded = decode_line(line, received_ms=received_ms)
        except BadLine:
            # Without its newline it may be a line that is being written right now.
            self.bad_lines += line.endswith(b"\n")
            return None
        self.flags.update(decoded.flags)
        event = decoded.event
        event.size_bytes = len(line)
        event.cursor = cursor
        return event


def _epoch_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
