"""The lines of a journal as they are read: no line, however long, fills the memory."""

import gzip
from collections.abc import Iterator
from typing import BinaryIO

MAX_LINE_BYTES = 128 * 1024 * 1024
"""Longest line that is looked at; four times the longest that an agent's stream may have."""
SKIPPED_BYTES = 1 << 30
"""Of a longer one, what is passed over to find its end; a file that goes on so (a sparse one may for terabytes, a
compressed one too) is no journal any more, and counts as ended before that line."""
_CHUNK_BYTES = 1 << 20
NO_EVENT = b"\x00"
"""Stands for a line that is too long to be looked at."""


def journal_lines(file: BinaryIO | gzip.GzipFile, limit_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[bytes, int]]:
    """Each line with its line end, and its length in bytes; in place of a longer one stands a line that is no event."""
    while line := file.readline(limit_bytes + 1):
        size = len(line)
        if size > limit_bytes:
            end = line[-1:]
            line = NO_EVENT
            while end != b"\n" and (more := file.readline(_CHUNK_BYTES)):
                size += len(more)
                if size > limit_bytes + SKIPPED_BYTES:
                    return
                end = more[-1:]
            if end == b"\n":
                line += end
        yield line, size
