"""The live side of a stream: timers without events, and regular syncs."""

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from tests.support.streams import START_MS, Bench, info

from hankwatch.core.errors import JournalWriteError
from hankwatch.stream import Journal


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(Journal.open(tmp_path / "events.jsonl"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.stream.run, bench.clock)
        await anyio.wait_all_tasks_blocked()
        yield bench
        tasks.cancel_scope.cancel()
    bench.stream.close()


async def test_a_timer_runs_at_its_instant_without_any_event(live: Bench) -> None:
    heard = live.hear()
    live.emit_at(300, "timer")
    await live.clock.advance(0.299)
    assert heard == []
    await live.clock.advance(0.001)
    assert heard == ["timer"]


async def test_an_earlier_timer_shortens_the_sleep(live: Bench) -> None:
    instants: list[int] = []
    live.timers.at(START_MS + 10_000, instants.append)
    await live.clock.advance(1)
    live.timers.at(START_MS + 2_000, instants.append)
    await live.clock.advance(1)
    assert instants == [START_MS + 2_000]
    await live.clock.advance(8)
    assert instants == [START_MS + 2_000, START_MS + 10_000]


async def test_a_timer_that_schedules_the_next_keeps_running(live: Bench) -> None:
    instants: list[int] = []

    def tick(at_ms: int) -> None:
        instants.append(at_ms - START_MS)
        live.timers.at(at_ms + 250, tick)

    live.timers.at(START_MS + 250, tick)
    await live.clock.advance(1)
    assert instants == [250, 500, 750, 1000]


async def test_a_dirty_journal_is_synced_each_interval(live: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    loop, synced = asyncio.get_running_loop(), asyncio.Event()

    def sync(fd: int) -> None:
        syncs.append(fd)
        loop.call_soon_threadsafe(synced.set)

    monkeypatch.setattr("os.fdatasync", sync)
    await live.clock.advance(2)
    assert len(syncs) == 0
    live.stream.emit(info("a"), info("b"))
    await live.clock.advance(0.5)
    assert len(syncs) == 0
    await live.clock.advance(2)
    await synced.wait()
    assert len(syncs) == 1


async def test_a_codon_end_syncs_at_once(live: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    monkeypatch.setattr("os.fdatasync", syncs.append)
    live.stream.emit(info("a"))
    await live.stream.sync()
    assert len(syncs) == 1


async def run_for(bench: Bench, seconds: float) -> None:
    """Run the stream and move its clock; returns only by the stream's failure."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.stream.run, bench.clock)
        await bench.clock.advance(seconds)
        await anyio.sleep_forever()


async def test_a_failed_sync_ends_the_run_of_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    bench = Bench(Journal.open(tmp_path / "events.jsonl"))
    bench.stream.emit(info("a"))
    monkeypatch.setattr("os.fdatasync", refuse)
    with pytest.raises(ExceptionGroup) as caught:
        await run_for(bench, 1)
    assert caught.group_contains(JournalWriteError)
    assert len(bench.failures) == 1
    assert bench.stream.emit(info("after")) == ()
    bench.stream.close()
    assert bench.written() == ["a"]


async def test_a_timer_that_meets_a_full_disk_ends_the_run_of_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    bench = Bench(Journal.open(tmp_path / "events.jsonl"))
    bench.emit_at(10, "timer")
    monkeypatch.setattr("os.write", refuse)
    with pytest.raises(ExceptionGroup) as caught:
        await run_for(bench, 0.01)
    assert caught.group_contains(JournalWriteError)
    assert len(bench.failures) == 1
    bench.stream.close()


async def test_closing_the_stream_ends_its_run(tmp_path: Path) -> None:
    bench = Bench(Journal.open(tmp_path / "events.jsonl"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.stream.run, bench.clock)
        await anyio.wait_all_tasks_blocked()
        bench.stream.close()
    await bench.stream.run(bench.clock)


async def test_a_cancelled_run_leaves_the_stream_usable(tmp_path: Path) -> None:
    bench = Bench(Journal.open(tmp_path / "events.jsonl"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.stream.run, bench.clock)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    bench.timers.at(START_MS, lambda _at_ms: None)
    bench.stream.emit(info("still"))
    bench.stream.close()
    assert bench.written() == ["still"]
