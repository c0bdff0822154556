"""kill -9 of a process that checks and wakes: each committed fire is accepted exactly once (spec watches 8, invariant 2)."""

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.support.killed import killed_after
from tests.support.watch_stores import store_url
from tests.support.watch_worker import Accepting, arm_all, bench_of

from hankwatch.core.clock import SystemClock
from hankwatch.watches.delivery import Channel, DeliveryStatus

WORKER = """
    from tests.support.watch_worker import main
    main(*sys.argv[2:])
"""
OPEN = (DeliveryStatus.PENDING, DeliveryStatus.DELIVERING)


async def check_killed(backend: str, home: Path, seed: int) -> None:
    chance = random.Random(seed)
    with store_url(backend, home) as url:
        bench = bench_of(url, home, SystemClock())
        arm_all(bench, home)
        for _ in range(chance.randint(1, 2)):
            killed_after(WORKER, chance.uniform(0, 0.3), url, str(home))

        bench.outbox.reclaim(frozenset({str(home)}))
        while bench.outbox.find(channel=Channel.WAKE, statuses=OPEN):
            assert await bench.deliverer.deliver_waiting()
        committed = [
            f"wake:{watch.id}:{watch.generation}:{fire}"
            for watch in bench.store.find()
            for fire in range(1, watch.fire_count + 1)
        ]
        wakes = {delivery.id: delivery.status for delivery in bench.outbox.find(channel=Channel.WAKE)}
        bench.database.close()

    accepted = Counter(Accepting(home / "accepted").ids())
    assert wakes.keys() == set(committed)
    assert len(committed) > 0
    assert accepted == Counter(id_ for id_, status in wakes.items() if status is not DeliveryStatus.HELD)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.parametrize("seed", range(5))
async def test_each_committed_fire_is_accepted_exactly_once_whenever_its_process_is_killed(
    tmp_path: Path, backend: str, seed: int
) -> None:
    await check_killed(backend, tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.parametrize("seed", range(100, 200))
async def test_each_committed_fire_is_accepted_exactly_once_at_two_hundred_kills(
    tmp_path: Path, backend: str, seed: int
) -> None:
    await check_killed(backend, tmp_path, seed)
