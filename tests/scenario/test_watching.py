"""Engine, deliverer and service together over one store: what watches promise (spec watches 8).

Where each of the invariants is proven:

===  ==================================================================================================
 1   contract/test_watch_store.py: transition, evaluation and deliveries commit together; nothing of a
     decision that fails to commit stays
 2   fault/test_killed_watch_engine.py, fault/test_killed_wakes.py; e2e/test_killed_watch_engine.py: by commands, on
     PostgreSQL; scenario/test_watches_in_runs.py: a delivery whose info stands is not run again;
     contract/test_watch_store.py: delivery ids of its own
 3   here: a cancel wins over a check that runs and over a wake that waits; a wake in hand arrives before
     the cancel returns
 4   property/test_watch_decisions.py: what makes no claim moves nothing; fires are those of the settled checks
     alone
 5   here: the final check begins within a second of the deadline
 6   unit/watches/test_verifiers.py: limits, trees, bounded output; here: a check that hangs is given up,
     and what a killed engine left behind
 7   here: a bad record, a hung check, a hung or failing hook or session delays no other watch;
     contract/test_unreadable_watches.py: the bad record is listed and can be got rid of
 8   here: clock steps; contract/test_watch_store.py: a clock that went back silences nothing
 9   property/test_watch_authority.py: applying the same set twice changes nothing
10   property/test_watch_authority.py; unit/watches/test_turn.py, e2e/test_watch_turns.py: an agent's own shell
11   property/test_wake_texts.py
12   here: everything that did not go out as meant is counted and told
13   here: a restart
14   contract/test_watch_store.py: a listed watch that nobody polls is seen; here: a stopped engine
===  ==================================================================================================
"""

import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from signal import SIGKILL
from typing import Any

import anyio
import pytest
from sqlalchemy import text
from tests.support.children import flowing
from tests.support.runs import is_alive
from tests.support.watch_bench import EVERYWHERE, WatchBench, finding

from hankwatch.core.clock import SystemClock, VirtualClock
from hankwatch.core.errors import StoreFailed
from hankwatch.processes.child import spawn
from hankwatch.runner.waking import WakeRuns
from hankwatch.watches.authority import operator
from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus, Woken
from hankwatch.watches.requests import read_edit
from hankwatch.watches.store import Lease, WatchStore
from hankwatch.watches.watch import EndReason, Outcome, Status, Watch
from hankwatch.watching import EngineRoom, Watching

pytestmark = pytest.mark.slow
YEARS_S = 10 * 365 * 86_400.0


@pytest.fixture
async def clock() -> AsyncIterator[VirtualClock]:
    """Time that runs fifty times as fast."""
    virtual = VirtualClock()
    virtual.step_wall(86_400.0)
    async with flowing(virtual, step_s=0.05):
        yield virtual


@pytest.fixture
async def bench(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[WatchBench]:
    made = WatchBench(str(tmp_path / "watches.db"), clock, home=tmp_path, journal=tmp_path / "events.jsonl")
    yield made
    made.database.close()


def signals(bench: WatchBench) -> list[str]:
    return [kind.removeprefix("watch.") for kind in bench.journaled.types() if kind != "watch.armed"]


async def test_a_tripwire_fires_once_wakes_its_session_and_ends(bench: WatchBench) -> None:
    watch = await bench.arm(run_prompt="Run the smoke test.")
    async with bench.running():
        await bench.checked(watch, 2)
        bench.dials.says["a"] = True
        ended = await bench.ended(watch)
        await bench.until(lambda: bool(bench.wakes()))

    assert (ended.end_reason, ended.fire_count) == (EndReason.SATISFIED, 1)
    assert bench.wakes() == [f"wake:{watch.id}:1:1"]
    assert "Run the smoke test." in bench.inbox.accepted[f"wake:{watch.id}:1:1"]


# Invariant 3


async def test_a_cancel_wins_over_a_check_that_runs(bench: WatchBench) -> None:
    bench.dials.says["a"] = 20.0
    watch = await bench.arm()
    async with bench.running():
        await bench.until(lambda: bench.dials.polled.get("a", 0) == 1)
        ended = await bench.service.cancel_watch(operator(), watch.id)
        again = await bench.service.cancel_watch(operator(), watch.id)
        other = await bench.arm("b")
        await bench.checked(other, 6)

    assert ended == again == bench.stands(watch)
    assert (ended.end_reason, ended.check_count, bench.wakes()) == (EndReason.CANCELLED, 0, [])


async def test_a_cancel_wins_over_a_wake_that_waits_for_its_session(bench: WatchBench) -> None:
    bench.inbox.answers += [Woken.BUSY] * 3
    bench.dials.says["a"] = True
    watch = await bench.arm(repeat=True)
    async with bench.running():
        await bench.inbox.begun.wait()
        await bench.service.cancel_watch(operator(), watch.id)
        other = await bench.arm("b")
        await bench.checked(other, 10)

    (wake,) = bench.outbox.find(channel=Channel.WAKE)
    assert (wake.status, wake.reason, bench.wakes()) == (DeliveryStatus.SUPPRESSED, "cancelled", [])


async def test_a_cancel_wins_over_the_wake_of_a_fire_that_came_before_it(bench: WatchBench) -> None:
    """The tripwire has fired and ended, and its session is busy: whoever cancels then is not woken any more."""
    bench.inbox.answers += [Woken.BUSY] * 2
    bench.dials.says["a"] = True
    watch = await bench.arm()
    async with bench.running():
        await bench.inbox.begun.wait()
        still = await bench.service.cancel_watch(operator(), watch.id)
        await bench.checked(await bench.arm("b"), 10)

    (wake,) = bench.outbox.find(channel=Channel.WAKE)
    assert (still.end_reason, wake.status, bench.wakes()) == (EndReason.SATISFIED, DeliveryStatus.SUPPRESSED, [])


async def test_a_wake_in_hand_arrives_before_the_cancel_returns_or_never(bench: WatchBench) -> None:
    bench.inbox.answers.append(4.0)
    bench.dials.says["a"] = True
    watch = await bench.arm(repeat=True)
    async with bench.running():
        await bench.inbox.begun.wait()
        await bench.service.cancel_watch(operator(), watch.id)
        at_return = bench.wakes()
        await bench.checked(await bench.arm("b"), 4)

    assert bench.wakes() == at_return == [f"wake:{watch.id}:1:1"]


@pytest.mark.parametrize("lease_s", [0.0, 60.0])
async def test_a_cancel_wins_over_a_wake_that_was_in_the_hands_of_somebody_who_died(
    bench: WatchBench, lease_s: float
) -> None:
    bench.dials.says["a"] = True
    watch = await bench.arm()
    await bench.service.evaluate_now(operator(), watch.id)
    taken = bench.outbox.take(Channel.WAKE, bench.now(), homes=None, homeless=True, limit=1, lease_s=lease_s)
    await bench.service.cancel_watch(operator(), watch.id)
    async with bench.running():
        await bench.checked(await bench.arm("b"), 10)

    (wake,) = bench.outbox.find(channel=Channel.WAKE)
    assert [lease.delivery.id for lease in taken] == [wake.id]
    assert (wake.status, bench.wakes()) == (DeliveryStatus.SUPPRESSED, [])


async def test_an_edit_during_a_check_survives_it(bench: WatchBench) -> None:
    bench.dials.says["a"] = 10.0
    watch = await bench.arm()
    async with bench.running():
        await bench.until(lambda: bench.dials.polled.get("a", 0) == 1)
        await bench.service.update_watch(operator(), watch.id, read_edit({"interval_s": 90, "run_prompt": "later"}))
        after = await bench.checked(watch, 1)

    assert (after.interval_s, after.run_prompt, after.check_count) == (90, "later", 1)
    assert after.next_check_at is not None
    assert after.last_checked_at is not None
    assert (after.next_check_at - after.last_checked_at).total_seconds() >= 90
    assert bench.dials.polled["a"] == 1


# Invariant 5


@pytest.mark.parametrize(("says", "reason"), [(True, "satisfied"), (60.0, "expired")])
@pytest.mark.parametrize("hangs", [False, True])
async def test_the_final_check_begins_within_a_second_of_the_deadline(
    tmp_path: Path, says: Any, reason: str, *, hangs: bool
) -> None:
    """Whatever the interval, whatever runs, and however full the pool is."""
    bench = WatchBench(str(tmp_path / "watches.db"), SystemClock())
    hung = [f"hung{number}" for number in range(12)]
    bench.dials.says.update(dict.fromkeys(hung, 60.0))
    bench.dials.says["a"] = 60.0 if hangs else False
    watch = await bench.arm(interval_s=3_600, expires_in_s=1.5, notify_on=["met", "expired"])
    async with bench.running():
        await bench.until(lambda: bench.dials.polled.get("a", 0) == 1)
        for name in hung:
            await bench.arm(name)
        bench.dials.says["a"] = says
        await bench.until(lambda: bench.dials.polled["a"] == 2)
        assert watch.expires_at is not None
        late_s = (bench.now() - watch.expires_at).total_seconds()
        if reason == "satisfied":
            ended = await bench.ended(watch)
            assert ended.end_reason is EndReason.SATISFIED
            assert ended.max_lateness_s <= 1.0

    assert 0 <= late_s <= 1.0
    bench.database.close()


# Invariants 6 and 7


async def test_nothing_that_is_bad_delays_another_watch(bench: WatchBench) -> None:
    async def hangs(_: Delivery) -> None:
        await anyio.sleep_forever()

    async def fails(_: Delivery) -> None:
        raise ValueError("a hook's own mistake")

    async def quits(_: Delivery) -> None:
        sys.exit(1)

    bench.service.register_watch_hook(on_met=hangs, on_changed=fails, on_armed=quits)
    bench.inbox.answers += [ValueError("no such pipe"), 1_000.0]
    bench.dials.says.update(
        {"hangs": 1_000.0, "fails": ValueError("broken"), "hooked": True, "woken": True, "good": False}
    )
    bad = await bench.arm("bad")
    with bench.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_watches SET record = '{' WHERE id = :id"), {"id": bad.id})
    for name in ("hangs", "fails", "hooked", "woken"):
        await bench.arm(name)
    with bench.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_deliveries SET content = '{' WHERE watch_id = :id"), {"id": bad.id})
    async with bench.running():
        good = await bench.arm("good")
        before = bench.now()
        await bench.checked(good, 4)
        bench.dials.says["good"] = True
        await bench.ended(good)
        await bench.until(lambda: f"wake:{good.id}:1:1" in bench.wakes())
        took_s = (bench.now() - before).total_seconds()

    assert took_s < 60  # four intervals and a bit, with fifty-fold time; a hang is 1,000 s


async def test_a_hook_may_be_a_plain_function_and_is_called_once(bench: WatchBench) -> None:
    called = list[str]()
    bench.service.register_watch_hook(on_met=lambda delivery: called.append(delivery.id))
    bench.dials.says["a"] = True
    watch = await bench.arm()
    async with bench.running():
        await bench.ended(watch)
        await bench.until(lambda: bool(called))
        await bench.checked(await bench.arm("b"), 4)

    assert called == [f"hook:{watch.id}:1:1"]


async def test_a_hook_that_hangs_is_given_up_at_its_limit_and_tried_again(bench: WatchBench) -> None:
    async def hangs(_: Delivery) -> None:
        await bench.clock.sleep(10_000)

    bench.service.register_watch_hook(on_met=hangs)
    bench.dials.says["a"] = True
    watch = await bench.arm(actions=["hook"])
    async with bench.running():
        await bench.ended(watch)
        await bench.until(lambda: any(hook.attempts > 1 for hook in bench.outbox.find(channel=Channel.HOOK)))

    told = {hook.id: hook.reason or "" for hook in bench.outbox.find(channel=Channel.HOOK)}
    assert told[f"hook:{watch.id}:1:1"].startswith("TimeoutError: a hook took longer than 10 s")


async def test_executions_are_looked_for_again_after_the_store_failed(
    bench: WatchBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As checks and deliveries are; whoever runs them goes on."""
    looks, real = 0, WatchStore.find

    def fails_at_times(store: WatchStore, **asked: Any) -> list[Watch]:
        nonlocal looks
        looks += 1
        if looks in {2, 3}:
            raise StoreFailed("postgresql://there", "the server closed the connection")
        return real(store, **asked)

    monkeypatch.setattr(WatchStore, "find", fails_at_times)
    watching = Watching(bench.service, bench.store, bench.outbox, bench.evaluator, bench.clock, None)
    room = EngineRoom(watching, None, WakeRuns(bench.outbox, bench.clock, bench.now, ["false"], {}))
    watch = await bench.arm()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(room.run)
        await bench.until(lambda: looks > 4)
        await bench.checked(watch, 2)
        tasks.cancel_scope.cancel()


async def test_a_check_that_hangs_is_given_up_at_its_limit_and_claims_nothing(bench: WatchBench) -> None:
    bench.dials.says["a"] = 1_000.0
    watch = await bench.arm(repeat=True)
    async with bench.running():
        after = await bench.checked(watch, 1)
    assert (after.last_outcome, after.last_reason) == (Outcome.UNAVAILABLE, "timeout")
    assert (after.memory.was_met, after.memory.consecutive_errors) == (False, 1)


async def test_episodes_are_told_once(bench: WatchBench) -> None:
    """Broken and recovered, flapping, stalled: one event each, however long it goes on."""
    bench.dials.says.update({"broken": ValueError("down"), "still": finding("same")})
    broken = await bench.arm("broken", repeat=True, interval_s=3_600)
    flaps = await bench.arm("flaps", trigger="change", interval_s=3_600)
    still = await bench.arm("still", trigger="change", stall_after=3, interval_s=3_600)
    for number in range(12):
        bench.dials.says["flaps"] = finding(number)
        for watch in (broken, flaps, still):
            await bench.service.evaluate_now(operator(), watch.id)
    bench.dials.says["broken"] = False
    for _ in range(2):
        await bench.service.evaluate_now(operator(), broken.id)
    while await bench.deliverer.deliver_waiting():
        pass

    for signal in ("flapping", "broken", "recovered", "stalled"):
        assert signals(bench).count(signal) == 1, signal
    assert bench.evaluator.metrics.flapping == {"change": 1}
    assert bench.evaluator.metrics.fires == {"change": 11}


# Invariant 6


async def test_what_a_check_left_behind_whose_engine_was_killed_is_ended_before_the_next(
    bench: WatchBench, clock: VirtualClock, tmp_path: Path
) -> None:
    watch = await bench.arm(verifier={"type": "command", "command": "true"}, interval_s=15)
    bench.store.take_one(watch.id, bench.now(), lease_s=lambda _: 0.001)  # by the engine that was killed
    await clock.sleep(1)
    left = partial(spawn, ["sleep", "60"], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, clock=SystemClock())
    async with (
        left(marker=f"watch/here/{watch.id}/1") as mine,
        left(marker=f"watch/there/{watch.id}/1") as of_another_store,
    ):
        checked = await bench.service.evaluate_now(operator(), watch.id)

        assert (checked.check_count, (await mine.wait()).signal) == (1, SIGKILL)
        assert is_alive(of_another_store.pid)


# Invariant 8


@pytest.mark.parametrize("step_s", [YEARS_S, -YEARS_S], ids=["ahead", "back"])
async def test_a_step_of_the_clock_neither_hangs_nor_bursts_nor_silences(
    bench: WatchBench, clock: VirtualClock, step_s: float
) -> None:
    watch = await bench.arm(interval_s=5)
    async with bench.running():
        await bench.checked(watch, 2)
        clock.step_wall(step_s)
        before, began = bench.stands(watch).check_count, clock.monotonic()
        after = await bench.checked(watch, before + 4)
        took_s = clock.monotonic() - began

    assert after.status is Status.ACTIVE
    assert 12 <= took_s <= 60


@pytest.mark.parametrize("step_s", [YEARS_S, -YEARS_S], ids=["ahead", "back"])
async def test_a_step_of_the_clock_while_nothing_runs_is_got_over_by_the_next_start(
    tmp_path: Path, bench: WatchBench, clock: VirtualClock, step_s: float
) -> None:
    watch = await bench.arm(never_expires=True)
    async with bench.running():
        await bench.checked(watch, 2)
    clock.step_wall(step_s)
    again = WatchBench(str(tmp_path / "watches.db"), clock, dials=bench.dials)
    began, before = clock.monotonic(), bench.stands(watch).check_count
    async with again.running():
        await again.checked(watch, before + 4)
    took_s = clock.monotonic() - began
    again.database.close()

    assert 12 <= took_s <= 60


# Invariant 12


async def test_what_did_not_go_out_as_meant_is_counted_and_told(bench: WatchBench) -> None:
    bench.inbox.answers += [Woken.GONE]
    bench.dials.says.update({"a": True, "many": finding(0)})
    gone = await bench.arm("a")
    many = await bench.arm("many", trigger="change", session="busy", interval_s=86_400, never_expires=True)
    async with bench.running():
        await bench.ended(gone)
        await bench.checked(many, 1)
        for number in range(1, 24):
            bench.dials.says["many"] = finding(number)
            await bench.service.evaluate_now(operator(), many.id)
        await bench.until(lambda: not bench.outbox.find(statuses=[DeliveryStatus.PENDING, DeliveryStatus.DELIVERING]))

    told = [event for event in bench.journaled.events.values() if event.TYPE == "watch.delivery"]
    shown = sorted((event.channel, event.status, event.reason) for event in told)  # type: ignore[attr-defined]
    assert ("wake", "dead", "there is no such session") in shown
    held = bench.outbox.find(channel=Channel.WAKE, statuses=[DeliveryStatus.HELD])
    assert len(held) == bench.stands(many).fire_count - 20 == 3
    assert shown.count(("wake", "held", "day-limit")) == len(held)
    notices = [one for one in await bench.service.notifications(operator()) if one.content["reason"] == "held"]
    assert len(notices) == 1


async def test_a_check_that_comes_late_says_by_how_much(bench: WatchBench, clock: VirtualClock) -> None:
    watch = await bench.arm()
    began = clock.monotonic()
    await bench.until(lambda: clock.monotonic() - began > 20)
    async with bench.running():
        after = await bench.checked(watch, 1)

    (evaluation, *_) = reversed(bench.store.evaluations(watch.id))
    assert after.max_lateness_s >= 20
    assert evaluation.late_s >= 20


# Invariants 13 and 14


@pytest.mark.parametrize(("value_now", "fires"), [("v1", 0), ("v2", 1)])
async def test_a_restart_fires_exactly_what_changed_while_it_was_down(
    tmp_path: Path, bench: WatchBench, clock: VirtualClock, value_now: str, fires: int
) -> None:
    bench.dials.says["a"] = finding("v1")
    watch = await bench.arm(trigger="change")
    async with bench.running():
        await bench.checked(watch, 2)
    bench.dials.says["a"] = finding(value_now)
    before = bench.stands(watch)

    again = WatchBench(str(tmp_path / "watches.db"), clock, dials=bench.dials, inbox=bench.inbox)
    async with again.running():
        after = await again.checked(watch, before.check_count + 4)
        await again.until(lambda: len(again.wakes()) >= fires)
    again.database.close()

    assert after.fire_count == fires
    assert len(bench.wakes()) == fires


async def test_a_watch_whose_engine_has_stopped_is_seen(bench: WatchBench, clock: VirtualClock) -> None:
    watch = await bench.arm()
    async with bench.running():
        await bench.checked(watch, 1)
        alive = bench.store.engines.liveness(EVERYWHERE, bench.now())
    began = clock.monotonic()
    await bench.until(lambda: clock.monotonic() - began > 30)
    stopped = bench.store.engines.liveness(EVERYWHERE, bench.now())

    assert alive.last_loop_at is not None
    assert (stopped.last_loop_at, stopped.most_overdue) == (None, watch.id)
    assert stopped.lag_s >= 20


async def test_an_idle_engine_looks_about_once_a_second(bench: WatchBench, clock: VirtualClock) -> None:
    """Also while a check runs, and one is due again and again."""
    looks = 0
    real = bench.store.take

    def counted(*arguments: Any, **options: Any) -> list[Lease]:
        nonlocal looks
        looks += options["final"]
        return real(*arguments, **options)

    bench.store.take = counted  # type: ignore[method-assign]
    bench.dials.says["a"] = 25.0
    await bench.arm()
    async with bench.running():
        began = clock.monotonic()
        await bench.until(lambda: clock.monotonic() - began > 20)

    assert looks <= 40
