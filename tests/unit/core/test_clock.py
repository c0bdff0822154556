from datetime import UTC, datetime, timedelta

import anyio
import pytest

from hankwatch.core.clock import LAST_STAMP_MS, LATEST_MS, StreamTime, SystemClock, Timers, VirtualClock

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)


async def test_the_virtual_clock_wakes_sleepers_in_order_of_their_instants() -> None:
    clock = VirtualClock(START)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))
        if name == "first":
            await clock.sleep(1)
            woken.append(("again", clock.monotonic()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleeper, "late", 5)
        tasks.start_soon(sleeper, "first", 2)
        tasks.start_soon(sleeper, "last", 5)
        await clock.advance(5)
    assert woken == [("first", 2), ("again", 3), ("late", 5), ("last", 5)]
    assert clock.now() == START + timedelta(seconds=5)


async def test_the_virtual_clock_stands_still_until_it_is_told() -> None:
    clock = VirtualClock(START)
    await clock.sleep(0)
    assert (clock.now(), clock.monotonic()) == (START, 0)


async def test_a_wall_clock_step_leaves_the_monotonic_clock_alone() -> None:
    clock = VirtualClock(START)
    clock.step_wall(-3600)
    assert (clock.now(), clock.monotonic()) == (START - timedelta(hours=1), 0)


async def test_the_system_clock_is_aware_and_never_sleeps_backwards() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(-1)
    assert clock.monotonic() >= before
    assert clock.now().utcoffset() == timedelta(0)


async def test_live_stream_time_begins_at_the_wall_clock_and_passes_as_time_does() -> None:
    clock = VirtualClock(START)
    time = StreamTime(clock)
    assert time.now_ms() == START_MS
    await clock.advance(1.5)
    assert time.now_ms() == START_MS + 1500


@pytest.mark.parametrize("step_s", [-315_360_000, -3600, -0.5, 0.5, 3600, 315_360_000])
async def test_stream_time_goes_on_as_it_was_when_the_wall_clock_is_set(step_s: float) -> None:
    clock = VirtualClock(START)
    time = StreamTime(clock)
    clock.step_wall(step_s)
    assert time.now_ms() == START_MS
    await clock.advance(2)
    assert time.now_ms() == START_MS + 2000


async def test_live_stream_time_moves_on_from_where_it_was_told_to_be() -> None:
    clock = VirtualClock(START)
    time = StreamTime(clock)
    await clock.advance(1)
    time.advance_to(START_MS + 5000)
    time.advance_to(START_MS + 3000)
    await clock.advance(1)
    assert time.now_ms() == START_MS + 6000


def test_replayed_stream_time_moves_only_forward_and_only_when_told() -> None:
    time = StreamTime(start_ms=100)
    time.advance_to(50)
    assert time.now_ms() == 100
    time.advance_to(200)
    assert time.now_ms() == 200


def test_a_timer_runs_once_with_its_own_instant() -> None:
    timers, ran = Timers(), list[int]()
    timers.at(10, ran.append)
    timers.run_due(9)
    assert ran == []
    timers.run_due(25)
    timers.run_due(30)
    assert ran == [10]


def test_a_cancelled_timer_is_not_due() -> None:
    timers, ran = Timers(), list[int]()
    timer = timers.at(10, ran.append)
    later = timers.at(20, ran.append)
    timer.cancel()
    timer.cancel()
    assert timers.next_due_ms() == 20
    later.cancel()
    assert timers.next_due_ms() is None
    timers.run_due(100)
    assert ran == []


def test_a_timer_may_cancel_one_that_is_due_with_it() -> None:
    timers, ran = Timers(), list[int]()
    second = None

    def first(_: int) -> None:
        assert second is not None
        second.cancel()

    timers.at(10, first)
    second = timers.at(10, ran.append)
    timers.run_due(10)
    assert ran == []


def test_the_live_sleeper_hears_of_an_earlier_head_only() -> None:
    heard: list[int | None] = []
    timers = Timers()
    timers.on_earlier_head = lambda: heard.append(timers.next_due_ms())
    for due in (20, 30, 10, 10):
        timers.at(due, lambda _: None)
    assert heard == [20, 10]


async def test_stream_time_stands_still_at_the_last_stamp_and_jumps_no_nearer_than_a_year() -> None:
    clock = VirtualClock(START)
    time = StreamTime(clock)
    time.advance_to(10**18)
    assert time.now_ms() == LATEST_MS
    await clock.advance(1)
    assert time.now_ms() == LATEST_MS + 1_000
    await clock.advance(400 * 86_400)
    assert time.now_ms() == LAST_STAMP_MS
