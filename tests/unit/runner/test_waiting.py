"""A codon's time budget: waiting for watches takes nothing of it (spec watches 6)."""

import pytest

from hankwatch.runner.budget import Limit
from hankwatch.runner.sessions import turns_of
from hankwatch.runner.state import CodonRecord
from hankwatch.runner.waiting import TimeLimit, left_of
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


@pytest.mark.parametrize(("limit_s", "waited_s", "left_s"), [(3_600, 600, 3_000), (3_600, 9_000, 60), (5, 9_000, 5)])
def test_a_codon_that_is_re_entered_waits_for_what_is_left_of_its_limit(
    limit_s: float, waited_s: float, left_s: float
) -> None:
    assert left_of(limit_s, waited_s) == left_s


def test_a_session_that_was_re_entered_has_had_the_turns_that_were_told_then() -> None:
    killed = CodonRecord("a", 1, "failed", "", session_id="s", extensions=1)
    again = CodonRecord("a", 2, "completed", "", session_id="s", extensions=1, wake_turns=1, session_turn=4)
    later = CodonRecord("b", 1, "completed", "", session_id="s2", previous_session_id="s")

    assert turns_of("s", [killed, again]) == 4
    assert turns_of("s2", [killed, again, later]) == 5
