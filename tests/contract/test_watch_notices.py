"""PostgreSQL's notices only shorten the poll: losing them loses nothing (spec watches 7)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psycopg
import pytest
from tests.support.watch_bench import WatchBench
from tests.support.watch_stores import POSTGRES, store_url

from hankwatch.core.clock import SystemClock, VirtualClock
from hankwatch.watches.authority import operator
from hankwatch.watches.database import Database
from hankwatch.watches.notify import LONGEST_WAIT_S, Listener

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN hankwatch' AND application_name = %s"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with store_url("postgres", tmp_path) as address:
        yield f"{address}&application_name={tmp_path.name[:60]}"


@asynccontextmanager
async def listening(listener: Listener) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.run)
        yield
        tasks.cancel_scope.cancel()


class Nudges:
    """Counts, and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._next = anyio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._next.set()
        self._next = anyio.Event()

    async def next(self) -> None:
        await self._next.wait()


def end_listeners(application: str) -> int:
    with psycopg.connect(POSTGRES, autocommit=True) as admin:
        pids = [pid for (pid,) in admin.execute(LISTENERS, [application])]
        for pid in pids:
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
    return len(pids)


async def test_what_another_worker_arms_is_heard_of_at_once(url: str) -> None:
    one, other, nudges = Database(url), WatchBench(url, SystemClock()), Nudges()
    async with listening(Listener(one, SystemClock(), [nudges])):
        await nudges.next()  # connected
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(nudges.next)
            await other.arm(condition="x" * 4_000)
    assert nudges.count >= 2
    one.close()
    other.database.close()


async def test_taking_and_checking_what_did_not_change_is_no_news(url: str) -> None:
    bench, nudges = WatchBench(url, SystemClock()), Nudges()
    watch = await bench.arm()
    async with listening(Listener(bench.database, SystemClock(), [nudges])):
        await nudges.next()
        before = nudges.count
        for _ in range(5):
            await bench.service.evaluate_now(operator(), watch.id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(nudges.next)
            await bench.arm("other")  # the mark behind all that could have been heard
    assert nudges.count == before + 1
    bench.database.close()


async def test_a_connection_that_is_ended_is_made_anew_and_nothing_is_missed_or_doubled(
    url: str, tmp_path: Path
) -> None:
    bench, other = WatchBench(url, SystemClock()), WatchBench(url, SystemClock())
    bench.dials.says["a"] = bench.dials.says["b"] = True
    nudges = Nudges()
    listener = Listener(bench.database, SystemClock(), [bench.engine.nudge, bench.deliverer.nudge, nudges])
    async with bench.running(), listening(listener):
        await nudges.next()
        await bench.ended(await other.arm("a"))
        assert end_listeners(tmp_path.name[:60]) == 1
        second = await other.arm("b", run_prompt="y" * 20_000)  # while nobody listens
        await bench.ended(second)
        await bench.until(lambda: listener.connects == 2)
        await bench.until(lambda: len(bench.wakes()) == 2)
    assert bench.dials.polled == {"a": 1, "b": 1}
    for one in (bench, other):
        one.database.close()


async def test_a_server_that_is_away_is_asked_ever_more_rarely() -> None:
    class Gone:
        is_postgres = True
        address = "postgresql://postgres@127.0.0.1:1/none"
        shown = "gone"

    waits = list[float]()

    class Counting(VirtualClock):
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 9:
                await anyio.sleep_forever()

    with anyio.move_on_after(15) as scope:
        async with listening(Listener(Gone(), Counting(), [])):  # type: ignore[arg-type]
            while len(waits) < 9:  # noqa: ASYNC110 - refused connections are real
                await anyio.sleep(0.01)
    assert not scope.cancelled_caught
    assert waits == [0.5, 1, 2, 4, 8, 16, LONGEST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S]


async def test_a_file_has_nothing_to_hear(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "watches.db"))
    await Listener(database, SystemClock(), []).run()
    database.close()
