"""A file that another process appends to, truncates or replaces, as whole lines with cursors."""

import os
from collections.abc import Iterator
from pathlib import Path

from hankwatch.core.files import open_regular
from hankwatch.stream.journal_lines import MAX_LINE_BYTES, NO_EVENT

_CHUNK_BYTES = 256 * 1024
_HEAD_BYTES = 64
"""A journal's first line begins with a unique id: this much tells two files apart."""


class FollowedFile:
    """Reads whole lines from an offset on and notices when the path no longer is the file it reads.

    A file is known by device, inode and its first bytes, because truncation keeps the inode and a deleted
    file's inode is used again.
    """

    def __init__(self, path: Path, offset: int, limit_bytes: int = MAX_LINE_BYTES) -> None:
        self.has_more = False
        """Whether there is reason to call ``lines`` again at once."""
        self.restarted = False
        """Whether the last ``lines`` began anew, at the beginning of another or a truncated file."""
        self._path = path
        self._limit_bytes = limit_bytes
        self._cursor = offset
        """Where the last whole line ends."""
        self._rest: list[bytes] = []
        """Pieces of the line behind it, kept only while a line is longer than a chunk, and none of a longer one."""
        self._rest_bytes = 0
        self._fd = -1
        self._head = b""
        self._replaced = False
        """The path leads elsewhere: read once more, for what was appended before the replacement."""
        self._drained = False
        """That last read is done."""

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Whole lines of the next chunk, newline included, each with the offset where it ends.

        In place of one that is longer than the limit stands a line that is no event.
        """
        self.has_more = False
        self.restarted = self._fd >= 0 and (self._drained or self._truncated())
        if self.restarted:
            self.close()
            self._cursor, self._replaced, self._drained = 0, False, False
            self._hold()
        if self._fd < 0 and not self._open():
            return
        chunk = os.pread(self._fd, _CHUNK_BYTES, self._cursor + self._rest_bytes)
        self.has_more = len(chunk) == _CHUNK_BYTES
        if not self.has_more:
            self._drained, self._replaced = self._replaced, self._leads_elsewhere()
            self.has_more = self._replaced
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            size_bytes = self._rest_bytes + len(line) + 1
            data = b"".join((*self._rest, line, b"\n")) if size_bytes <= self._limit_bytes else NO_EVENT + b"\n"
            self._hold()
            self._cursor += size_bytes
            yield data, self._cursor
        # An unfinished line at the end of the file is read anew: its writer may still cut it off.
        if len(chunk) == _CHUNK_BYTES:
            self._hold(*self._rest, rest, size_bytes=self._rest_bytes + len(rest))
        else:
            self._hold()

    def _hold(self, *pieces: bytes, size_bytes: int = 0) -> None:
        self._rest_bytes = size_bytes
        self._rest = [*pieces] if size_bytes <= self._limit_bytes else []

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        try:
            self._fd = open_regular(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        self._head = os.pread(self._fd, _HEAD_BYTES, 0)
        return True

    def _truncated(self) -> bool:
        before, self._head = self._head, os.pread(self._fd, _HEAD_BYTES, 0)
        return os.fstat(self._fd).st_size < self._cursor or not self._head.startswith(before)

    def _leads_elsewhere(self) -> bool:
        try:
            return not os.path.samestat(os.fstat(self._fd), self._path.stat())
        except FileNotFoundError:
            return False
