"""Any interleaving of events, time, answers, drains and the end: nothing lost, doubled, reordered or late."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sentinels import Desk, desk, scope, source

from hankwatch.llm.client import ModelRequest
from hankwatch.testing import Answer, after, failure, hang

EXECUTIONS: list[dict[str, Any]] = [
    {"strategy": "immediate"},
    {"strategy": "debounce", "milliseconds": 2_000},
    {"strategy": "debounce", "milliseconds": 2_000, "maxWaitMilliseconds": 3_000},
    {"strategy": "count", "threshold": 3},
    {"strategy": "timeWindow", "milliseconds": 4_000},
]
ANSWERS: list[Answer] = ["ok", failure("no"), failure("never"), after(3, "late"), after(500, "x"), hang()]
STEP = st.one_of(
    st.tuples(st.just("events"), st.integers(1, 8)),
    st.tuples(st.just("flood"), st.integers(95, 220)),
    st.tuples(st.just("pass"), st.integers(1, 9_000)),
    st.tuples(st.just("rest"), st.just(0)),
    st.tuples(st.just("drain"), st.integers(0, 20)),
)


async def play(root: Path, execution: dict[str, Any], answers: list[Answer], steps: list[tuple[str, int]]) -> Desk:
    script = iter(answers)

    def answer(request: ModelRequest) -> Answer:
        return next(script, "ok") if request.labels["sentinelId"] == "tried" else "fine"

    async with desk(root, answer) as d:
        tried = source("tried", execution=execution, errorHandling={"maxConsecutiveFailures": 2})
        async with d.manager.attach(scope(), [tried, source("witness")]) as attached:
            for kind, amount in steps:
                match kind:
                    case "events" | "flood":
                        for _ in range(amount):
                            d.info(after_ms=100)
                    case "pass":
                        d.stream.advance(amount)
                        await d.clock.advance(amount / 1_000)
                    case "rest":
                        await anyio.wait_all_tasks_blocked()
                    case _:
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(attached.drain, float(amount))
                            await d.clock.advance(amount + 1.0)
        d.info()
        await anyio.wait_all_tasks_blocked()
        return d


def matched(d: Desk, sentinel_id: str) -> list[str]:
    """The events that a sentinel on every ``info`` has to account for: those of its lifetime."""
    ids: list[str] = []
    for event in d.stream.events:
        if event.type == "sentinel.unloaded" and event.data["sentinelId"] == sentinel_id:
            break
        if event.type == "info":
            ids.append(event.id)
    return ids


def check_everything_accounted_for(d: Desk, sentinel_id: str) -> None:
    triggered = d.said("triggered", sentinel_id=sentinel_id)
    errors = d.said("error", sentinel_id=sentinel_id)
    abandoned = [data for data in errors if data["errorType"] == "abandoned"]
    (unloaded,) = d.said("unloaded", sentinel_id=sentinel_id)
    assert unloaded["reason"] in {"codon-complete", "consecutive-failures"}
    begun = {data["triggerNumber"] for data in triggered}
    used = [event_id for data in triggered for event_id in data["eventIds"]]
    left = [event_id for data in abandoned for event_id in data["eventIds"] if event_id not in set(used)]
    everything = matched(d, sentinel_id)
    order = {event_id: place for place, event_id in enumerate(everything)}
    # Not one twice, in the order in which they happened, and what is missing was counted as dropped.
    assert [order[event_id] for event_id in used] == sorted({order[event_id] for event_id in used})
    assert [order[event_id] for event_id in left] == sorted({order[event_id] for event_id in left})
    assert len(everything) == len(used) + len(left) + unloaded["droppedEvents"]
    # Each trigger that was begun ended in exactly one way.
    ends = [data["triggerNumber"] for data in d.said("output", sentinel_id=sentinel_id)]
    ends += [data["triggerNumber"] for data in errors if "triggerNumber" in data]
    ends += [number for data in abandoned for number in data["triggerNumbers"] if number in begun]
    assert sorted(ends) == sorted(begun)
    assert sum(data["count"] for data in errors if data["errorType"] == "queue-overflow") == unloaded["droppedTriggers"]
    assert [data["at"] for data in triggered] == sorted(data["at"] for data in triggered)


def check_silence_after_the_unload(d: Desk, sentinel_id: str) -> None:
    kinds = [e.type for e in d.stream.events if e.data.get("sentinelId") == sentinel_id]
    assert (kinds[0], kinds[-1]) == ("sentinel.loaded", "sentinel.unloaded")
    assert kinds.count("sentinel.unloaded") == 1


def check_the_report_is_the_journals(d: Desk, sentinel_id: str) -> None:
    outputs = d.said("output", sentinel_id=sentinel_id)
    assert d.report(sentinel_id).read_text() == "".join(f"\n---\n{data['content']}\n" for data in outputs)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.sampled_from(EXECUTIONS),
    st.lists(st.sampled_from(ANSWERS), max_size=12),
    st.lists(STEP, min_size=2, max_size=12),
)
def test_no_interleaving_loses_doubles_or_reorders_anything(
    execution: dict[str, Any], answers: list[Answer], steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        d = anyio.run(partial(play, Path(folder), execution, answers, steps))
        for sentinel_id in ("tried", "witness"):
            check_everything_accounted_for(d, sentinel_id)
            check_silence_after_the_unload(d, sentinel_id)
            check_the_report_is_the_journals(d, sentinel_id)
        assert d.stream.listener_failures == []
