"""Stretches of a plain journal as blocks of whole lines, so that a block without what is looked for is never split.

In place of a line that is too long to be looked at stands one that is no event, in a block of its own.
"""

import os
from collections import deque
from collections.abc import Iterator

from hankwatch.stream.journal_lines import MAX_LINE_BYTES, NO_EVENT, SKIPPED_BYTES

_BLOCK_BYTES = 64 * 1024


def blocks(fd: int, after: int, end: int, limit_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[bytes, int]]:
    """Whole lines, many at a time, each block with the offset where it ends; a cut line comes last."""
    pieces: list[bytes] = []  # of a line whose end is still to be found
    start = begin = after  # of the window, and of that line
    while start < end and start - begin <= limit_bytes + SKIPPED_BYTES:
        window = os.pread(fd, min(_BLOCK_BYTES, end - start), start)
        if not window:
            break
        start += len(window)
        if (window_begin := start - len(window)) - begin > limit_bytes:
            pieces.clear()
            if (newline := window.find(b"\n")) < 0:
                continue
            begin = window_begin + newline + 1
            yield NO_EVENT + b"\n", begin
            window = window[newline + 1 :]
        newline = window.rfind(b"\n")
        if newline >= 0:
            begin = start - len(window) + newline + 1
            yield b"".join((*pieces, window[: newline + 1])), begin
            pieces.clear()
        pieces.append(window[newline + 1 :])
    if any(pieces):
        yield b"".join(pieces), start


def blocks_backwards(fd: int, end: int, limit_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[bytes, int]]:
    """The same from an offset back to the beginning; a cut line is the last one of the first block."""
    pieces: deque[bytes] = deque()  # behind a beginning of lines that is still to be found
    block_end = start = end
    while start > 0 and block_end - start <= limit_bytes + SKIPPED_BYTES:
        window_end, start = start, max(0, start - _BLOCK_BYTES)
        window = os.pread(fd, window_end - start, start)
        if block_end - window_end > limit_bytes:
            pieces.clear()
            if (newline := window.rfind(b"\n")) < 0 < start:
                continue
            yield NO_EVENT + b"\n", block_end
            window, block_end = window[: newline + 1], start + newline + 1
        newline = window.find(b"\n")
        # A newline at the very end is of the line before it: no block begins there yet.
        if newline >= 0 and (newline + 1 < len(window) or pieces):
            pieces.appendleft(window[newline + 1 :])
            yield b"".join(pieces), block_end
            pieces.clear()
            window, block_end = window[: newline + 1], start + newline + 1
        pieces.appendleft(window)
    if any(pieces):
        yield b"".join(pieces), block_end


def lines_of(block: bytes, end: int) -> Iterator[tuple[bytes, int]]:
    """The lines of a block with the offsets where they end, the last one first."""
    stop, start = len(block), end - len(block)
    while stop > 0:
        begin = block.rfind(b"\n", 0, stop - 1) + 1
        yield block[begin:stop], start + stop
        stop = begin


def line_begin(fd: int, offset: int) -> int:
    """Where the line begins that goes through an offset; the offset itself where none does."""
    block, _ = next(blocks_backwards(fd, offset), (b"", 0))
    return offset - (len(block) - block.rfind(b"\n") - 1)
