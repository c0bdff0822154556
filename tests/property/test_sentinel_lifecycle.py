"""Any interleaving of events, time, answers, drains and the end: nothing lost, doubled, reordered or late."""

import json
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
from hankwatch.testing import Answer, ScriptedModel, after, failure, hang

EXECUTIONS: list[dict[str, Any]] = [
    {"strategy": "immediate"},
    {"strategy": "debounce", "milliseconds": 2_000},
    {"strategy": "debounce", "milliseconds": 2_000, "maxWaitMilliseconds": 3_000},
    {"strategy": "count", "threshold": 3},
    {"strategy": "timeWindow", "milliseconds": 4_000},
]
ENUM = {"output": "enum", "enumValues": ["ok", "fine", "late", "x"]}
MODES: list[dict[str, Any]] = [
    {},
    {"structuredOutput": ENUM},
    {"conversational": {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 2}}, "systemPromptText": "s"},
    {
        "conversational": {"trimmingStrategy": {"type": "maxTokens", "maxTokens": 60}, "continueOnError": True},
        "systemPromptText": "s",
        "structuredOutput": ENUM,
    },
]
ANSWERS: list[Answer] = [
    "ok",
    failure("no"),
    failure("never"),
    after(3, "late"),
    after(500, "x"),
    hang(),
    "not a choice",
]
STEP = st.one_of(
    st.tuples(st.just("events"), st.integers(1, 8)),
    st.tuples(st.just("flood"), st.integers(95, 130)),
    st.tuples(st.just("pass"), st.integers(1, 9_000)),
    st.tuples(st.just("rest"), st.just(0)),
    st.tuples(st.just("drain"), st.integers(0, 20)),
)


def tried(execution: dict[str, Any], mode: dict[str, Any]) -> Any:
    return source("tried", execution=execution, errorHandling={"maxConsecutiveFailures": 2}, **mode)


async def play(
    root: Path, execution: dict[str, Any], mode: dict[str, Any], answers: list[Answer], steps: list[tuple[str, int]]
) -> Desk:
    script = iter(answers)

    def answer(request: ModelRequest) -> Answer:
        return next(script, "ok") if request.labels["sentinelId"] == "tried" else "fine"

    async with desk(root, answer) as d:
        async with d.manager.attach(scope(), [tried(execution, mode), source("witness")]) as attached:
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
        assert {state["lifecycle"] for state in attached.states()} == {"unloaded"}
        return d


async def play_again(root: Path, execution: dict[str, Any], mode: dict[str, Any]) -> Desk:
    """Retry what failed, with a model that never does."""
    async with desk(root, "fine") as d:
        await d.retry({"build": [tried(execution, mode)]})
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
    entry = "\n---\n{}\n" if d.report(sentinel_id).suffix == ".md" else '"{}"\n'
    assert d.report(sentinel_id).read_text() == "".join(entry.format(data["content"]) for data in outputs)


def check_the_conversation_is_the_outputs(d: Desk, mode: dict[str, Any]) -> None:
    file = d.root / ".hankweave" / "sentinels" / "history" / "tried-codon-build.json"
    contents = [data["content"] for data in d.said("output", sentinel_id="tried")]
    if "conversational" not in mode or not contents:
        assert not file.exists()
        return
    messages = [entry["message"] for entry in json.loads(file.read_text())]
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2)
    answers = [message["content"] for message in messages[1::2]]
    assert answers
    assert answers == contents[-len(answers) :]
    assert isinstance(d.model, ScriptedModel)
    for request in d.model.requests:
        turns = (len(request.messages) - 2) // 2 - ("repair" in request.labels)
        assert request.labels["sentinelId"] != "tried" or 0 <= turns <= 4


def check_a_retry_makes_good_what_failed(d: Desk, again: Desk) -> None:
    """Each event that matched and was not dropped is now part of one output, and of no other."""
    (unloaded,) = d.said("unloaded", sentinel_id="tried")
    ids: list[str] = []
    for played in (d, again):
        triggered = {data["triggerNumber"]: data["eventIds"] for data in played.said("triggered", sentinel_id="tried")}
        for data in played.said("output", sentinel_id="tried"):
            ids += triggered[data["triggerNumber"]]
    everything = set(matched(d, "tried"))
    assert len(ids) == len(set(ids)) == len(everything) - unloaded["droppedEvents"]
    assert set(ids) <= everything


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.sampled_from(EXECUTIONS),
    st.sampled_from(MODES),
    st.lists(st.sampled_from(ANSWERS), max_size=12),
    st.lists(STEP, min_size=2, max_size=10),
)
def test_no_interleaving_loses_doubles_or_reorders_anything(
    execution: dict[str, Any], mode: dict[str, Any], answers: list[Answer], steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        d = anyio.run(partial(play, Path(folder), execution, mode, answers, steps))
        for sentinel_id in ("tried", "witness"):
            check_everything_accounted_for(d, sentinel_id)
            check_silence_after_the_unload(d, sentinel_id)
            check_the_report_is_the_journals(d, sentinel_id)
        check_the_conversation_is_the_outputs(d, mode)
        assert d.stream.listener_failures == []
        again = anyio.run(partial(play_again, Path(folder), execution, mode))
        check_a_retry_makes_good_what_failed(d, again)
