"""A time limit counted by the injected clock."""

import anyio
import pytest

from hankwatch.core.clock import VirtualClock
from hankwatch.core.limits import within


async def test_a_result_in_time_is_returned() -> None:
    async def answer() -> str:
        return "in time"

    assert await within(VirtualClock(), 1.0, answer) == "in time"


async def test_a_failure_comes_out_as_it_is() -> None:
    async def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await within(VirtualClock(), 1.0, fail)


async def test_the_limit_cancels_and_raises() -> None:
    clock = VirtualClock()
    outcomes: list[str] = []

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            outcomes.append("cancelled")

    async def limited() -> None:
        with pytest.raises(TimeoutError):
            await within(clock, 5.0, wait)
        outcomes.append(f"at {clock.monotonic():g}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(limited)
        await clock.advance(4.9)
        assert outcomes == []
        await clock.advance(1.0)
    assert outcomes == ["cancelled", "at 5"]


async def test_a_call_that_turns_its_cancellation_into_a_failure_has_still_timed_out() -> None:
    clock = VirtualClock()

    async def stubborn() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("connection lost")

    async def limited() -> None:
        with pytest.raises(TimeoutError):
            await within(clock, 5.0, stubborn)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(limited)
        await clock.advance(5.0)


async def test_cancellation_from_outside_passes() -> None:
    clock = VirtualClock()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await within(clock, 5.0, anyio.sleep_forever)
    assert scope.cancelled_caught
