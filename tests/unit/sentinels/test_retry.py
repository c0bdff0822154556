"""Failed triggers carried out again: each once, as they were, in the same report (spec sentinels 5)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from tests.support.sentinels import Desk, desk, scope, source

from hankwatch.events.run import CodonStarted, Info, ResultingState, StateTransition, Transition
from hankwatch.sentinels.reports import rebuild
from hankwatch.sentinels.retry import Retried
from hankwatch.sentinels.source import SentinelSource
from hankwatch.testing import Answer, ScriptedModel, failure, hang

PROMPT = {
    "userPromptText": "{{ codon.name }} {{ world.currentTime }} {{ events | map(attribute='data.message') | join }}"
}
COUNT = {"execution": {"strategy": "count", "threshold": 2}}


def narrator(**config: Any) -> SentinelSource:
    return source(**{**PROMPT, **config})


async def run(root: Path, answers: Any, made: SentinelSource, *texts: str, budget_s: float | None = None) -> None:
    """A run of one codon in which these infos happened."""
    async with desk(root, answers) as d, d.manager.attach(scope(), [made]) as attached:
        d.stream.emit(
            CodonStarted(codon_id="build", codon_name="Building", session_id="", start_time="2000-01-01T00:00:00.000Z")
        )
        for text in texts:
            d.info(text, after_ms=1_000)
        if budget_s is None:
            await d.manager.settle()
        else:
            await anyio.wait_all_tasks_blocked()
            await attached.drain(budget_s)


async def again(root: Path, answers: Any, made: SentinelSource | None, **options: Any) -> tuple[list[Retried], Desk]:
    sources: Mapping[str, Sequence[SentinelSource]] = {"build": [made] if made else []}
    async with desk(root, answers) as d:
        return await d.retry(sources, **options), d


def asked(d: Desk) -> list[str]:
    assert isinstance(d.model, ScriptedModel)
    return [request.messages[-1].content for request in d.model.requests]


async def test_a_failed_trigger_is_carried_out_again_with_its_own_events_and_instant(tmp_path: Path) -> None:
    await run(tmp_path, [failure("down"), "two"], narrator(), "a", "b")
    results, d = await again(tmp_path, "one", narrator())
    assert results == [Retried("narrator", "build", 1, 1, "done")]
    assert asked(d) == ["Building 2000-01-01T00:00:01.000Z a"]
    assert [event.type for event in d.stream.events] == [
        "sentinel.loaded",
        "sentinel.triggered",
        "sentinel.output",
        "sentinel.unloaded",
    ]
    assert d.said("loaded")[0]["source"] == "retry"
    assert d.said("triggered")[0]["cause"] == "match"
    assert d.report().read_text() == "\n---\ntwo\n\n---\none\n"
    d.report().unlink()
    rebuild(d.reader().read(), tmp_path)
    assert d.report().read_text() == "\n---\ntwo\n\n---\none\n"


async def test_what_succeeded_is_not_repeated_and_what_failed_again_can_be_retried_again(tmp_path: Path) -> None:
    await run(tmp_path, failure("down"), narrator(), "a", "b")
    answers: list[Answer] = ["one", failure("still down")]
    first, _ = await again(tmp_path, answers, narrator())
    assert [(r.trigger_number, r.outcome) for r in first] == [(1, "done"), (2, "failed")]
    assert first[1].reason == "scripted: still down"
    second, d = await again(tmp_path, "two", narrator())
    assert [(r.trigger_number, r.outcome) for r in second] == [(2, "done")]
    assert asked(d) == ["Building 2000-01-01T00:00:02.000Z b"]
    third, d = await again(tmp_path, "three", narrator())
    assert (third, d.stream.events) == ([], [])


async def test_abandoned_triggers_are_told_apart_by_their_counts(tmp_path: Path) -> None:
    await run(tmp_path, hang(), narrator(**COUNT), *"abcde", budget_s=0.0)
    results, d = await again(tmp_path, "late", narrator(**COUNT))
    assert [(r.event_count, r.outcome) for r in results] == [(2, "done"), (2, "done"), (1, "done")]
    assert asked(d) == [
        "Building 2000-01-01T00:00:02.000Z ab",
        "Building 2000-01-01T00:00:04.000Z cd",
        "Building 2000-01-01T00:00:05.000Z e",
    ]


async def test_what_a_crash_left_is_closed_first_and_then_retried(tmp_path: Path) -> None:
    async with desk(tmp_path, hang()) as d, d.manager.attach(scope(), [narrator()]):
        d.info("a")
        await anyio.wait_all_tasks_blocked()
        d.stream.closed = True
    results, d = await again(tmp_path, "one", narrator())
    assert [(r.trigger_number, r.outcome) for r in results] == [(1, "done")]
    assert [data["reason"] for data in d.said("unloaded")] == ["shutdown", "codon-complete"]


async def test_invalid_answers_and_failed_prompts_are_retried_with_the_config_of_now(tmp_path: Path) -> None:
    wanted = {"structuredOutput": {"output": "enum", "enumValues": ["yes"]}}
    await run(tmp_path, "maybe", narrator(**wanted), "a")
    assert [r.outcome for r in (await again(tmp_path, "yes", narrator(**wanted)))[0]] == ["done"]
    await run(tmp_path, "ok", narrator(userPromptText="{{ nothing }}"), "b")
    assert [r.outcome for r in (await again(tmp_path, "ok", narrator()))[0]] == ["done"]


async def test_three_failures_in_a_row_end_a_retry_too(tmp_path: Path) -> None:
    made = narrator(errorHandling={"maxConsecutiveFailures": 9})
    await run(tmp_path, failure("down"), made, *"abcde")
    results, d = await again(tmp_path, failure("down"), narrator())
    assert [r.outcome for r in results] == ["failed"] * 3 + ["impossible"] * 2
    assert d.said("unloaded")[0]["reason"] == "consecutive-failures"
    results, _ = await again(tmp_path, "ok", narrator())
    assert [r.trigger_number for r in results if r.outcome == "done"] == [1, 2, 3, 4, 5]


async def test_more_failed_triggers_than_a_queue_holds_are_all_retried(tmp_path: Path) -> None:
    made = narrator(errorHandling={"maxConsecutiveFailures": 1_000})
    async with desk(tmp_path, failure("down")) as d, d.manager.attach(scope(), [made]):
        for _ in range(130):
            d.info("x")
            await d.manager.settle()
    results, d = await again(tmp_path, "ok", narrator())
    assert [r.outcome for r in results] == ["done"] * 130
    assert d.said("unloaded")[0]["droppedTriggers"] == 0


async def test_one_sentinel_alone_can_be_named(tmp_path: Path) -> None:
    await run(tmp_path, failure("down"), narrator(), "a")
    assert (await again(tmp_path, "ok", narrator(), sentinel_id="other"))[0] == []
    assert len((await again(tmp_path, "ok", narrator(), sentinel_id="narrator"))[0]) == 1


async def test_a_sentinel_that_the_hank_no_longer_has_is_told(tmp_path: Path) -> None:
    await run(tmp_path, failure("down"), narrator(), "a")
    (result,), d = await again(tmp_path, "ok", None)
    assert (result.outcome, result.reason) == ("impossible", "the hank's codon 'build' has no such sentinel any more")
    assert d.stream.events == []


async def test_a_sentinel_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    await run(tmp_path, failure("down"), narrator(), "a")
    (result,), _ = await again(tmp_path, "ok", narrator(userPromptText="{% broken"))
    assert result.outcome == "impossible"
    assert "it cannot be loaded: a prompt does not parse" in (result.reason or "")


async def test_dropped_triggers_and_unreadable_events_are_told(tmp_path: Path) -> None:
    async with desk(tmp_path, failure("down")) as d, d.manager.attach(scope(), [narrator()]):
        for _ in range(101):
            d.info("x")
        await d.manager.settle()
    journal = tmp_path / ".hankweave" / "events" / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    third = [number for number, line in enumerate(lines) if b'"type":"info"' in line][2]
    lines[third] = b"x" * (len(lines[third]) - 1) + b"\n"
    journal.write_bytes(b"".join(lines))
    results, _ = await again(tmp_path, "ok", narrator())
    impossible = {r.trigger_number: r.reason for r in results if r.outcome == "impossible"}
    assert list(impossible) == [3, 1]
    assert impossible[3] == "1 of its 1 events cannot be read from the journal"
    assert "does not say which events" in (impossible[1] or "")
    assert len(results) == 101


async def test_a_retry_watches_nothing(tmp_path: Path) -> None:
    await run(tmp_path, failure("down"), narrator(), "a")

    async with desk(tmp_path, "one") as d:

        def interrupt(event: Any) -> None:
            if event.type == "sentinel.output":
                d.stream.emit(Info(message="seen by nobody"))

        d.stream.subscribe(interrupt, name="test")
        await d.retry({"build": [narrator()]})
        assert len(d.triggers()) == 1


async def test_only_the_run_that_is_meant_is_retried(tmp_path: Path) -> None:
    for name in ("first", "second"):
        async with desk(tmp_path, failure("down")) as d:
            begin_run(d, name)
        await run(tmp_path, failure("down"), narrator(), name)
    results, d = await again(tmp_path, "one", narrator(), run_id="first")
    assert [result.outcome for result in results] == ["done"]
    assert asked(d)[0].endswith(" first")
    results, d = await again(tmp_path, "two", narrator())
    assert asked(d)[0].endswith(" second")


def begin_run(d: Desk, run_id: str) -> None:
    resulting = ResultingState(current_run_id=run_id, run_count=1, total_cost=0.0, current_run_cost=0.0)
    step = Transition(type="RunStarted", data={"runId": run_id})
    d.stream.emit(
        StateTransition(transition_type="RunStarted", run_id=run_id, transition=step, resulting_state=resulting)
    )
