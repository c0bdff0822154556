"""What one step over a huge line costs: no more than over a small one, so that no line stops the loop."""

import time

import pytest

from hankwatch.processes.lines import LineSplitter

pytestmark = pytest.mark.benchmark

CHUNK_BYTES = 64 * 1024
ROUNDS = 9


def longest_step_s(size_bytes: int) -> float:
    splitter = LineSplitter()
    chunk = b"a" * CHUNK_BYTES
    longest_s = 0.0
    for piece in [chunk] * (size_bytes // CHUNK_BYTES) + [b"\n"]:
        before = time.thread_time()
        splitter.feed(piece)
        longest_s = max(longest_s, time.thread_time() - before)
    return longest_s


@pytest.mark.parametrize("size_bytes", [10_000_000, 40_000_000])
def test_no_step_over_a_huge_line_stops_the_loop(size_bytes: int) -> None:
    longest_s = min(longest_step_s(size_bytes) for _ in range(ROUNDS))
    print(f"\nlongest step over a line of {size_bytes:,} bytes: {1000 * longest_s:.1f} ms")
    assert longest_s < 0.025
