"""Drains: nothing that was matched is lost, nothing waits for ever (bugs A10, A11)."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.sentinels import desk, scope, source

from hankwatch.testing import after, hang

COUNT = {"execution": {"strategy": "count", "threshold": 10}}
WINDOW = {"execution": {"strategy": "timeWindow", "milliseconds": 30_000}}
DEBOUNCE = {"execution": {"strategy": "debounce", "milliseconds": 5_000}}


@pytest.mark.parametrize("config", [COUNT, WINDOW, DEBOUNCE])
async def test_a_partial_buffer_becomes_a_final_trigger_at_the_last_events_instant(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**config)]) as attached:
        ids = [d.info(after_ms=100) for _ in range(7)]
        d.stream.advance(2_000)
        await attached.drain(10)
        assert d.triggers() == [ids]
        (data,) = d.said("triggered")
        assert (data["cause"], data["at"]) == ("drain", "2000-01-01T00:00:00.700Z")
        assert len(d.said("output")) == 1


async def test_a_timer_that_was_due_before_the_drain_fires_as_what_it_is(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**DEBOUNCE)]) as attached:
        d.info()
        d.stream._virtual.advance_to(d.stream.now_ms() + 60_000)  # time passed and nobody ran the timers
        await attached.drain(10)
        assert [data["cause"] for data in d.said("triggered")] == ["quiet"]


async def test_draining_twice_is_harmless(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**COUNT)]) as attached:
        d.info()
        await attached.drain(10)
        await attached.drain(10)
        assert len(d.said("triggered")) == 1


async def test_events_after_a_drain_are_still_observed(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**COUNT)]) as attached:
        first = d.info()
        await attached.drain(10)
        second = d.info()
        await attached.drain(10)
        assert d.triggers() == [[first], [second]]


async def test_a_drain_of_many_batches_carries_out_all_of_them(tmp_path: Path) -> None:
    async with desk(tmp_path, journaled=False) as d, d.manager.attach(scope(), [source(**WINDOW)]) as attached:
        for _ in range(5_500):
            d.info()
        await attached.drain(10)
        assert [data["eventCount"] for data in d.said("triggered")] == [1_000] * 5 + [500]
        assert [data["cause"] for data in d.said("triggered")] == ["full"] * 5 + ["drain"]


async def test_what_a_hanging_call_holds_up_is_cancelled_and_named_when_the_budget_is_spent(tmp_path: Path) -> None:
    async with desk(tmp_path, hang()) as d, d.manager.attach(scope(), [source()]) as attached:
        ids = [d.info() for _ in range(3)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attached.drain, 120.0)
            await d.clock.advance(119.9)
            assert d.said("error") == []
            await d.clock.advance(0.2)
        (error,) = d.said("error")
        assert (error["errorType"], error["reason"], error["count"]) == ("abandoned", "drain", 3)
        assert (error["triggerNumbers"], error["eventIds"]) == ([1, 2, 3], ids)
        assert d.said("unloaded") == []
        assert attached.summaries()[0].abandoned_triggers == 3


async def test_sentinels_drain_side_by_side_each_with_its_own_budget(tmp_path: Path) -> None:
    answers = {"slow": after(100, "late"), "slower": after(110, "later")}
    sentinels = [source("slow"), source("slower")]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), sentinels) as attached:
        d.info()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attached.drain, 120.0)
            await d.clock.advance(111)
        assert [data["content"] for data in d.said("output")] == ["late", "later"]
        assert d.said("error") == []


async def test_the_drains_of_one_attempt_share_the_budget_and_a_new_attempt_has_its_own(tmp_path: Path) -> None:
    async with desk(tmp_path, after(50, "late")) as d, d.manager.attach(scope(), [source()]) as attached:
        for fresh_budget, kept in ((False, True), (False, False), (True, True)):
            d.info()
            before = len(d.said("output"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(attached.drain, 80.0, fresh_budget=fresh_budget))
                await d.clock.advance(50.1)
            assert (len(d.said("output")) > before) is kept
        assert [data["errorType"] for data in d.said("error")] == ["abandoned"]


async def test_a_sentinel_whose_call_was_abandoned_goes_on_with_what_comes_later(tmp_path: Path) -> None:
    answers = [hang(), "fine"]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [source()]) as attached:
        d.info()
        await attached.drain(0)
        d.info()
        await attached.drain(10)
        assert [data["content"] for data in d.said("output")] == ["fine"]


async def test_a_drain_that_is_cancelled_leaves_the_sentinels_loaded(tmp_path: Path) -> None:
    async with desk(tmp_path, hang()) as d, d.manager.attach(scope(), [source()]) as attached:
        d.info()
        with anyio.CancelScope() as stop:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(attached.drain, 120.0)
                await anyio.wait_all_tasks_blocked()
                stop.cancel()
        assert d.said("unloaded", "error") == []
    assert [data["errorType"] for data in d.said("error")] == ["abandoned"]
    assert len(d.said("unloaded")) == 1


async def test_leaving_without_a_drain_names_what_was_only_buffered(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        async with d.manager.attach(scope(), [source(**COUNT)]):
            event_id = d.info()
        (error,) = d.said("error")
        assert (error["errorType"], error["reason"], error["eventIds"]) == ("abandoned", "unload", [event_id])


async def test_settling_waits_for_everything_that_waits_or_runs_and_for_nothing_else(tmp_path: Path) -> None:
    async with desk(tmp_path, after(5, "late")) as d, d.manager.attach(scope(), [source(), source("b", **COUNT)]):
        await d.manager.settle()
        d.info()
        d.info()
        settled = False

        async def settle() -> None:
            nonlocal settled
            await d.manager.settle()
            settled = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(settle)
            tasks.start_soon(d.manager.settle)
            await d.clock.advance(9.9)
            assert not settled
            await d.clock.advance(0.2)
        assert len(d.said("output")) == 2
