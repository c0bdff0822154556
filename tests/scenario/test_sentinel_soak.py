"""A long run under a hundred sentinels, a third of them misbehaving: no memory is lost and no emit is slowed."""

import gc
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import anyio
import pytest
from tests.support.sentinels import InProcessSandbox, on, scope, source

from hankwatch.core.clock import StreamTime, Timers, VirtualClock
from hankwatch.core.errors import InfrastructureError, ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.events.activity import AssistantAction
from hankwatch.events.envelope import IdSource
from hankwatch.events.run import Info
from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.sentinels.manager import Attached, SentinelManager
from hankwatch.sentinels.source import SentinelSource
from hankwatch.stream.journal import Journal
from hankwatch.stream.stream import EventStream
from hankwatch.testing import EPOCH_MS

PER_ROUND = 100
"""Events between two moments in which the sentinels' own work goes on; half of them are the agent's."""
TALKS = {"conversational": {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 5}}, "systemPromptText": "You watch."}
CHOICE = {"structuredOutput": {"output": "enum", "enumValues": ["seen"]}}


class Mixed:
    """Answers by the asking sentinel's name, and keeps nothing."""

    def check(self, model: str) -> ModelInfo | Unavailable:
        return ModelInfo(model, provider="scripted")

    async def complete(self, request: ModelRequest) -> ModelReply:
        await anyio.lowlevel.checkpoint()
        kind, _, _ = str(request.labels["sentinelId"]).partition("-")
        if kind == "hanging":
            await anyio.sleep_forever()
        if kind == "failing":
            raise ModelCallFailed(request.model, "down", retriable=True)
        return ModelReply("seen", 10, 1, 0.0001)


def sentinels() -> list[SentinelSource]:
    """Ten that fail, ten that hang, ten that flood, seventy that do what they should in every mode."""
    immediate, tens = {"strategy": "immediate"}, {"strategy": "count", "threshold": 10}
    patient = {"maxConsecutiveFailures": 1_000_000}
    made = [source(f"failing-{n}", execution=tens, errorHandling=patient) for n in range(10)]
    made += [source(f"hanging-{n}", execution=immediate) for n in range(10)]
    made += [source(f"flooding-{n}", execution=immediate) for n in range(10)]
    strategies = [
        {"strategy": "count", "threshold": 200},
        {"strategy": "timeWindow", "milliseconds": 60_000},
        {"strategy": "debounce", "milliseconds": 30_000},
    ]
    modes: list[dict[str, Any]] = [{}, TALKS, CHOICE]
    return made + [
        source(f"fine-{n}", execution=strategies[n % 3], trigger=on("info", code=str(n % 7)), **modes[n % 3])
        for n in range(70)
    ]


@dataclass(slots=True)
class Measured:
    """What a soak found."""

    rss_bytes: list[int] = field(default_factory=list)
    """At 10 % and at the end."""
    alone_us: list[float] = field(default_factory=list)
    """What an emit took in a run without sentinels."""
    observed_us: list[float] = field(default_factory=list)
    """The same event, which none of them waits for, in the one with a hundred."""

    def ratio(self, percent: int) -> float:
        """Of the two, at a percentile."""
        at = [quantiles(values, n=100)[percent - 1] for values in (self.observed_us, self.alone_us)]
        return at[0] / at[1]


def rss_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fail(error: InfrastructureError) -> None:
    raise error


def open_stream(path: Path) -> tuple[EventStream, StreamTime]:
    """A journaled stream in virtual time that remembers nothing."""
    stream_time = StreamTime(start_ms=EPOCH_MS)
    journal = Journal.open(path, sync_interval_s=None)
    redactor = Redactor()
    stream = EventStream(
        journal, time=stream_time, timers=Timers(), redactor=redactor, ids=IdSource(seed=0), on_failure=fail
    )
    return stream, stream_time


@asynccontextmanager
async def observed(root: Path, made: list[SentinelSource]) -> AsyncIterator[tuple[EventStream, StreamTime, Attached]]:
    managed = root / ".hankweave"
    (root / "agentRoot").mkdir(parents=True)
    stream, stream_time = open_stream(managed / "events" / "events.jsonl")
    manager = SentinelManager(
        stream,
        Mixed(),
        InProcessSandbox(),
        managed_dir=managed,
        agent_root=root / "agentRoot",
        clock=VirtualClock(),
    )
    async with manager, manager.attach(scope(), made) as attached:
        yield stream, stream_time, attached
    stream.close()


def emit_timed(stream: EventStream, text: str, times_us: list[float]) -> None:
    payload = AssistantAction(codon_id="build", action="message", content=text)
    begun = time.perf_counter_ns()
    stream.emit(payload)
    times_us.append((time.perf_counter_ns() - begun) / 1_000)


async def soak(root: Path, events: int) -> tuple[Measured, Attached]:
    measured = Measured()
    rounds = events // PER_ROUND
    async with (
        observed(root / "alone", []) as (alone, _, _),
        observed(root / "observed", sentinels()) as (stream, stream_time, attached),
    ):
        for number in range(rounds):
            stream_time.advance_to(stream_time.now_ms() + 1_000)
            for place in range(PER_ROUND // 2):
                stream.emit(Info(message=f"step {number}.{place}", code=str(place % 7)))
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            pair = [(stream, measured.observed_us), (alone, measured.alone_us)]
            for place in range(PER_ROUND // 2):
                for measured_stream, times_us in pair if place % 2 else reversed(pair):
                    emit_timed(measured_stream, f"step {number}.{place}", times_us)
            if number == rounds // 10:
                measured.rss_bytes.append(rss_bytes())
                measured.alone_us.clear()
                measured.observed_us.clear()
        measured.rss_bytes.append(rss_bytes())
        await attached.drain(0.0)
    return measured, attached


def check_everyone_did_their_part(attached: Attached, events: int) -> None:
    summaries = {summary.sentinel_id: summary for summary in attached.summaries()}
    assert len(summaries) == 100
    watched = events // 2
    for name, summary in summaries.items():
        kind = name.partition("-")[0]
        assert summary.unload_reason == "codon-complete"
        assert (kind in {"hanging", "flooding"}) == (summary.dropped_triggers > 0), summary
        if kind == "failing":
            assert summary.failed == summary.fired > watched // 20
        if kind == "hanging":
            assert summary.dropped_triggers + summary.abandoned_triggers == watched
        if kind == "fine":
            assert (summary.failed, summary.fired > 0) == (0, True)


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_hundred_sentinels_cost_the_agent_nothing_short_form(tmp_path: Path) -> None:
    measured, attached = await soak(tmp_path, 6_000)
    check_everyone_did_their_part(attached, 6_000)
    early, late = measured.rss_bytes
    assert late <= 1.2 * early
    # The machine may be busy with other tests: what no pause of a moment explains.
    assert measured.ratio(50) <= 2


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_a_hundred_sentinels_cost_the_agent_nothing(tmp_path: Path) -> None:
    measured, attached = await soak(tmp_path, 200_000)
    check_everyone_did_their_part(attached, 200_000)
    early, late = (size / 2**20 for size in measured.rss_bytes)
    print(f"\nRSS at 10 %: {early:.1f} MiB, at the end: {late:.1f} MiB ({late / early:.3f})")
    print(f"emit in us, alone and observed: median {median(measured.alone_us):.1f} {median(measured.observed_us):.1f}")
    print(f"ratio at p50 {measured.ratio(50):.2f}, at p99 {measured.ratio(99):.2f}")
    assert late <= 1.2 * early
    assert measured.ratio(50) <= 1.2
    assert measured.ratio(99) <= 1.2
