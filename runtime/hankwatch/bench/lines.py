"""The lines of a recording, plain or gzipped, and of a journal the events."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from hankwatch.core.errors import BadLine
from hankwatch.events.codec import decode_line
from hankwatch.events.envelope import Event
from hankwatch.processes.lines import Line, LineSplitter
from hankwatch.stream.damage import damage_named
from hankwatch.stream.journal_lines import journal_lines

LINE_GAP_MS = 5
"""Distance of a line without a stamp from the line before it (spec hank 5)."""
NO_STAMP_MS = 946_684_800_000
"""Start of a stream without any stamp: 2000-01-01T00:00:00Z."""
_CHUNK_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Place:
    """How far a file has been read."""

    read_bytes: int = 0
    """Of the file as it lies there, packed or not."""


def lines(path: Path, place: Place | None = None) -> Iterator[Line]:
    """Each line; one longer than an agent's lines may be is a stub (``LineSplitter``). ``place`` moves along.

    Raises:
        UsageError: the file cannot be read to its end.
    """
    splitter = LineSplitter()
    with _opened(path, place) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield from splitter.feed(chunk)
    yield from splitter.finish()


def journal_events(path: Path, place: Place | None = None) -> Iterator[Event | None]:
    """Each event of a journal, ours or foreign, and None for each line that is none; a torn last line is left out.

    An event without a readable stamp follows the one before it by ``LINE_GAP_MS``. ``place`` moves along.

    Raises:
        UsageError: the file cannot be read to its end.
    """
    at_ms = _first_stamp(path) - LINE_GAP_MS
    with _opened(path, place) as file:
        for line, _ in journal_lines(file):
            if not line.strip():
                continue
            try:
                event = decode_line(line, received_ms=at_ms + LINE_GAP_MS).event
            except BadLine:
                if line.endswith(b"\n"):
                    yield None
                continue
            at_ms = max(at_ms, event.at_ms)
            yield event


def events_with(path: Path, word: bytes) -> Iterator[Event]:
    """The events of a journal of ours whose lines contain ``word``, without reading into the others.

    Raises:
        UsageError: the file cannot be read to its end.
    """
    with _opened(path) as file:
        for line, _ in journal_lines(file):
            if word in line:
                with suppress(BadLine):
                    yield decode_line(line, received_ms=NO_STAMP_MS).event


def _first_stamp(path: Path) -> int:
    with _opened(path) as file:
        for line, _ in journal_lines(file):
            try:
                decoded = decode_line(line, received_ms=NO_STAMP_MS)
            except BadLine:
                continue
            if "stamp-replaced" not in decoded.flags:
                return decoded.event.at_ms
    return NO_STAMP_MS


class _Raw(io.FileIO):
    """The file itself, which tells where it is read."""

    def __init__(self, path: Path, place: Place) -> None:
        super().__init__(path)
        self._place = place

    def readinto(self, buffer: Any, /) -> int | None:
        count = super().readinto(buffer)
        self._place.read_bytes += count or 0
        return count


@contextmanager
def _opened(path: Path, place: Place | None = None) -> Iterator[BinaryIO]:
    place = place or Place()
    place.read_bytes = 0
    with damage_named(path), io.BufferedReader(_Raw(path, place), _BUFFER_BYTES) as file:
        packed = file.peek(len(_GZIP)).startswith(_GZIP)
        yield cast("BinaryIO", gzip.GzipFile(fileobj=file) if packed else file)
