"""Sentinels whose calls hang change nothing for whoever emits (spec sentinels 11).

Run with ``make bench``; prints what it measured.
"""

import gc
import time
from pathlib import Path
from statistics import median, quantiles

import pytest
from tests.support.sentinels import Desk, desk, on, scope, source

from hankwatch.events.activity import AssistantAction
from hankwatch.testing import hang

SENTINELS = 100
ROUNDS = 40
EVENTS_PER_ROUND = 500


def measure(d: Desk, latencies_us: list[float]) -> None:
    """Emit a round of events that no sentinel waits for; the time each call took."""
    emit = d.stream.emit
    for number in range(EVENTS_PER_ROUND):
        payload = AssistantAction(codon_id="build", action="message", content=f"step {number}")
        begun = time.perf_counter_ns()
        emit(payload)
        latencies_us.append((time.perf_counter_ns() - begun) / 1_000)


@pytest.mark.benchmark
async def test_hanging_sentinels_do_not_delay_an_emit(tmp_path: Path) -> None:
    hanging = [source(f"hanging-{number}", trigger=on("info")) for number in range(SENTINELS)]
    without, with_hanging = list[float](), list[float]()
    async with (
        desk(tmp_path / "none", hang()) as quiet,
        desk(tmp_path / "hundred", hang()) as busy,
        busy.manager.attach(scope(), hanging) as attached,
    ):
        for _ in range(20):
            busy.info()
        await busy.clock.advance(1)  # every sentinel's first call hangs now, 19 triggers wait behind it
        assert sum(summary.calls for summary in attached.summaries()) == SENTINELS
        gc.disable()
        try:
            for number in range(ROUNDS):
                pair = [(quiet, without), (busy, with_hanging)]
                for d, latencies_us in pair if number % 2 else reversed(pair):
                    measure(d, latencies_us)
        finally:
            gc.enable()
    p99 = [quantiles(latencies, n=100)[98] for latencies in (without, with_hanging)]
    p50 = [median(latencies) for latencies in (without, with_hanging)]
    print(f"\nemit latency in us        p50     p99   ({ROUNDS * EVENTS_PER_ROUND} events each, interleaved)")
    print(f"  no sentinel          {p50[0]:7.1f} {p99[0]:7.1f}")
    print(f"  {SENTINELS} hanging          {p50[1]:7.1f} {p99[1]:7.1f}   p99 ratio {p99[1] / p99[0]:.2f}")
    assert p99[1] <= 1.2 * p99[0]
