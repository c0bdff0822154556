"""Bytes of a stream into its lines, whatever their length and however the reads cut them."""

import hashlib
from dataclasses import dataclass

DEFAULT_CAP_BYTES = 32 * 1024 * 1024
"""Longest line that is kept whole (spec hank 2)."""

# From here on a line is hashed while it arrives, so that giving it up at the cap costs one chunk, not all of it.
_HASH_FROM_BYTES = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Stub:
    """What is left of a line longer than the cap."""

    size_bytes: int
    """Length of the line, without its line end."""
    sha256: str
    """Hash of the line without its line end, 64 hex digits."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line as it was read."""

    data: bytes
    """The line without ``\\n`` or ``\\r\\n``; empty when ``stub`` stands for it."""
    terminated: bool = True
    """False for what a stream that ended in the middle of a line left behind."""
    stub: Stub | None = None
    """Set instead of ``data`` when the line was longer than the cap."""


class LineSplitter:
    r"""Splits on ``\n`` bytes only; U+2028, form feeds and lone ``\r`` are data (packages: orjson writes them raw).

    A byte order mark before the first line is dropped. A line of exactly ``cap_bytes`` is whole; a longer one
    becomes a ``Stub`` and what follows it stays in step. Holds at most ``cap_bytes`` plus one chunk.
    """

    def __init__(self, cap_bytes: int = DEFAULT_CAP_BYTES) -> None:
        self._cap_bytes = cap_bytes
        self._held = bytearray()
        self._long: _LongLine | None = None
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Line]:
        r"""The lines that ``chunk`` completes, in order; what follows the last ``\n`` is kept for the next call."""
        *ends, rest = chunk.split(b"\n")
        lines: list[Line] = []
        for end in ends:
            self._hold(end)
            lines.append(self._take(terminated=True))
        self._hold(rest)
        return lines

    def finish(self) -> list[Line]:
        """The unterminated last line, or nothing; the stream has ended."""
        return [self._take(terminated=False)] if self._held or self._long else []

    def _hold(self, piece: bytes) -> None:
        if self._long is not None:
            self._long.update(piece)
        if self._long is None or self._long.size_bytes <= self._cap_bytes:
            self._held += piece
        else:
            self._held.clear()
        if self._long is None and len(self._held) > min(_HASH_FROM_BYTES, self._cap_bytes):
            self._long = _LongLine()
            self._long.update(self._held)

    def _take(self, *, terminated: bool) -> Line:
        long, self._long = self._long, None
        at_start, self._at_start = self._at_start, False
        if long is not None and long.size_bytes > self._cap_bytes:
            self._held.clear()
            return Line(b"", terminated, Stub(long.size_bytes, long.hexdigest()))
        data = bytes(self._held).removesuffix(b"\r")
        self._held.clear()
        return Line(data.removeprefix(_BOM) if at_start else data, terminated)


class _LongLine:
    r"""Size and hash of a line so far; a last ``\r`` waits, for it may be half of the line end."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._carriage_return = False
        self.size_bytes = 0

    def update(self, piece: bytes | bytearray) -> None:
        if not piece:
            return
        if self._carriage_return:
            self._hash.update(b"\r")
            self.size_bytes += 1
        self._carriage_return = piece.endswith(b"\r")
        body = memoryview(piece)[: len(piece) - self._carriage_return]
        self._hash.update(body)
        self.size_bytes += len(body)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
