"""Waiting no longer than a limit on the injected clock."""

import anyio

from hankwatch.core.clock import VirtualClock
from hankwatch.processes.limits import ends_within


async def test_work_that_ends_in_time_needs_no_time_of_the_clock() -> None:
    clock = VirtualClock()
    assert await ends_within(clock, 5, anyio.lowlevel.checkpoint)
    assert clock.monotonic() == 0


async def test_work_that_does_not_end_is_cancelled_at_the_limit() -> None:
    clock = VirtualClock()
    outcomes: list[tuple[bool, float]] = []

    async def wait() -> None:
        outcomes.append((await ends_within(clock, 5, anyio.sleep_forever), clock.monotonic()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await clock.advance(4.9)
        assert outcomes == []
        await clock.advance(0.1)
        assert outcomes == [(False, 5.0)]
