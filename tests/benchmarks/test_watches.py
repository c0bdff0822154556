"""What ten thousand armed watches cost: an idle engine, one check, memory.

Each ratio is measured side by side: a store with few watches and one with many take turns in short rounds within
one run, and the median round of each counts, so that a busy machine slows both.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import insert
from tests.support.streams import Bench, info
from tests.support.watch_bench import WatchBench
from tests.support.watches import a_watch

from hankwatch.core.clock import SystemClock
from hankwatch.stream import Journal
from hankwatch.watches.rows import columns
from hankwatch.watches.specs import CheckSpec, DocumentSpec, EventSpec, VerifierSpec
from hankwatch.watches.tables import watches
from hankwatch.watches.watch import Watch

pytestmark = pytest.mark.benchmark

FEW, MANY = 10, 10_000
ROUNDS = 25


def dial(number: int) -> VerifierSpec:
    return CheckSpec(type="check", name="dial", args={"name": str(number)})


def event_or_document(number: int) -> VerifierSpec:
    if number % 2:
        return DocumentSpec(type="document", path=f"out/{number}.json")
    trigger = {
        "type": "event",
        "on": ["info"],
        "conditions": [{"path": "code", "operator": "equals", "value": str(number)}],
    }
    return EventSpec.model_validate({"type": "event", "trigger": trigger})


@contextmanager
def armed(folder: Path, count: int, spec: Callable[[int], VerifierSpec]) -> Iterator[WatchBench]:
    """A store with so many active watches of one home, none of them due today."""
    folder.mkdir()
    writer = Bench(Journal.open(folder / "events.jsonl"))
    writer.stream.emit(info("begun"))
    bench = WatchBench(str(folder / "w.db"), SystemClock(), home=folder, journal=folder / "events.jsonl")
    digest = bench.evaluator.verifiers.behaviour_digest(dial(0))
    later = bench.now() + timedelta(days=3)
    made = [watch_of(folder, number, spec(number), bench, digest) for number in range(count)]
    rows = [
        columns(replace(watch, next_check_at=None if watch.verifier.type == "event" else later))
        | {"id": watch.id, "applied": False, "counts": False, "version": 1, "fence": 0, "leased_until_ms": 0}
        for watch in made
    ]
    with bench.database.writing() as connection:
        connection.execute(insert(watches), rows)
    yield bench
    bench.database.close()
    writer.stream.close()


def watch_of(folder: Path, number: int, spec: VerifierSpec, bench: WatchBench, digest: str) -> Watch:
    watch = a_watch(id=f"watch-{number}", home=str(folder), verifier=spec, behaviour_digest=digest, repeat=True)
    return replace(watch, created_at=bench.now(), expires_at=bench.now() + timedelta(days=5))


def medians(ways: Sequence[Callable[[], Any]]) -> list[float]:
    """Seconds of CPU of the median round of each; they take turns, in both orders."""
    rounds: list[list[float]] = [[] for _ in ways]
    for turn in range(ROUNDS):
        for way in range(len(ways)) if turn % 2 else reversed(range(len(ways))):
            start = time.process_time()
            ways[way]()
            rounds[way].append(time.process_time() - start)
    return [statistics.median(each) for each in rounds]


def looked(bench: WatchBench) -> Callable[[], None]:
    """One look of an engine, of which an idle one makes one a second."""

    async def look() -> None:
        async with anyio.create_task_group() as tasks:
            await bench.engine._look(tasks)

    return lambda: anyio.run(look)


@pytest.mark.parametrize("spec", [dial, event_or_document])
def test_an_idle_look_at_ten_thousand_watches(tmp_path: Path, spec: Callable[[int], VerifierSpec]) -> None:
    with ExitStack() as stack:
        few = stack.enter_context(armed(tmp_path / "few", FEW, spec))
        many = stack.enter_context(armed(tmp_path / "many", MANY, spec))
        for bench in (few, many):
            looked(bench)()  # the first one reads the records of those that listen
        few_s, many_s = medians([looked(few), looked(many)])

    print(f"\nidle look: {few_s * 1000:.1f} ms with {FEW}, {many_s * 1000:.1f} ms with {MANY} ({spec.__name__})")
    assert many_s < 0.1  # of each second
    assert many_s / few_s < (3 if spec is dial else 12)


def test_a_check_among_ten_thousand_watches(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ways = []
        for name, count in (("few", FEW), ("many", MANY)):
            bench = stack.enter_context(armed(tmp_path / name, count, dial))
            ways.append(checked(bench))
        few_s, many_s = medians(ways)

    print(f"\none check: {few_s * 1000:.1f} ms with {FEW}, {many_s * 1000:.1f} ms with {MANY}")
    assert many_s / few_s < 2


def checked(bench: WatchBench) -> Callable[[], None]:
    """Ten checks from lease to commit."""

    async def check() -> None:
        for number in range(10):
            lease = bench.store.take_one(f"watch-{number}", bench.now(), lease_s=bench.evaluator.lease_s)
            assert lease is not None
            await bench.evaluator.evaluate(lease)

    return lambda: anyio.run(check)


def test_memory_of_an_engine_with_ten_thousand_that_listen(tmp_path: Path) -> None:
    with armed(tmp_path / "many", MANY, event_or_document) as bench:
        tracemalloc.start()
        looked(bench)()
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    print(
        f"\nmemory: {kept / MANY:.0f} bytes a watch that listens, {peak / 2**20:.0f} MiB at the peak of the first look"
    )
    assert kept / MANY < 8_192


def test_checks_a_second_when_all_are_due(tmp_path: Path) -> None:
    """Wall time, so a number to read rather than to hold."""
    with armed(tmp_path / "all", 2_000, dial) as bench:
        with bench.database.writing() as connection:
            connection.execute(watches.update().values(due_ms=0))

        async def drain() -> float:
            start = time.perf_counter()
            with anyio.move_on_after(5):
                async with bench.running():
                    await anyio.sleep_forever()
            return time.perf_counter() - start

        took_s = anyio.run(drain)
        count = sum(bench.evaluator.metrics.checks.values())
    print(f"\n{count / took_s:.0f} checks a second on SQLite")
    assert count > 50
