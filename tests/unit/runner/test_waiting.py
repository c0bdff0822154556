"""A codon's time budget: waiting for watches takes nothing of it (spec watches 6)."""

from hankwatch.runner.budget import Limit
from hankwatch.runner.waiting import TimeLimit
from hankwatch.testing import open_test_stream

LIMIT = Limit("duration", 10.0, "complete")


async def test_a_limit_is_reached_by_the_time_that_does_not_wait() -> None:
    stream, up = open_test_stream(), list[int]()
    time = TimeLimit(stream)
    time.start(LIMIT, lambda: up.append(stream.now_ms()))

    async def wait() -> str:
        stream.advance(60_000)
        return "woken"

    stream.advance(9_000)
    assert await time.outside(wait) == "woken"
    stream.advance(999)
    assert up == []
    stream.advance(1)

    assert len(up) == 1
    assert time.waited_ms == 60_000


async def test_without_a_limit_waiting_is_counted_all_the_same() -> None:
    stream = open_test_stream()
    time = TimeLimit(stream)

    async def wait() -> None:
        stream.advance(1_500)

    await time.outside(wait)

    assert time.waited_ms == 1_500
