"""Stretches of a plain journal as blocks of whole lines, so that a block without what is looked for is never split."""

import os
from collections import deque
from collections.abc import Iterator

_BLOCK_BYTES = 64 * 1024


def blocks(fd: int, after: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Whole lines, many at a time, each block with the offset where it ends; a cut line comes last."""
    pieces: list[bytes] = []  # of a line whose end is still to be found
    start = after
    while start < end:
        window = os.pread(fd, min(_BLOCK_BYTES, end - start), start)
        if not window:
            break
        start += len(window)
        newline = window.rfind(b"\n")
        if newline >= 0:
            yield b"".join((*pieces, window[: newline + 1])), start - len(window) + newline + 1
            pieces.clear()
        pieces.append(window[newline + 1 :])
    if any(pieces):
        yield b"".join(pieces), start


def blocks_backwards(fd: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The same from an offset back to the beginning; a cut line is the last one of the first block."""
    pieces: deque[bytes] = deque()  # behind a beginning of lines that is still to be found
    block_end = start = end
    while start > 0:
        window_end, start = start, max(0, start - _BLOCK_BYTES)
        window = os.pread(fd, window_end - start, start)
        newline = window.find(b"\n")
        # A newline at the very end is of the line before it: no block begins there yet.
        if newline >= 0 and (newline + 1 < len(window) or pieces):
            pieces.appendleft(window[newline + 1 :])
            yield b"".join(pieces), block_end
            pieces.clear()
            window, block_end = window[: newline + 1], start + newline + 1
        pieces.appendleft(window)
    if pieces:
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
