"""Blocks of lines, read from either end: offsets are those of the file, and no line fills the memory."""

import tempfile

import pytest

from hankwatch.stream.blocks import blocks, blocks_backwards, lines_of
from hankwatch.stream.journal_lines import NO_EVENT

BLOCK = 64 * 1024
LIMIT = 3 * BLOCK
LENGTHS = (0, 1, 70_000, 400_000, 5, BLOCK - 1, BLOCK, 6 * BLOCK, 2)


@pytest.mark.parametrize("first", range(len(LENGTHS)))
@pytest.mark.parametrize("tail", [b"", b"torn", b"t" * 2 * BLOCK])
def test_a_line_that_is_too_long_is_no_event_and_moves_no_cursor(first: int, tail: bytes) -> None:
    whole = [b"x" * length + b"\n" for length in (*LENGTHS[first:], *LENGTHS[:first])]
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(whole) + tail)
        file.flush()
        end = file.tell()
        forwards = [blocks(file.fileno(), 0, end, LIMIT), blocks_backwards(file.fileno(), end, LIMIT)]
        for found in ([one for block in blocks_ for one in lines_of(*block)] for blocks_ in forwards):
            said = sorted(found, key=lambda line: line[1])
            expected, offset = [], 0
            for line in (*whole, *([tail] if tail else [])):
                offset += len(line)
                expected.append((NO_EVENT + b"\n" if len(line) > LIMIT + BLOCK else line, offset))
            assert said == expected
