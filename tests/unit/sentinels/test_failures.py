"""What a failing sentinel says, when it is unloaded, and that nothing of it reaches anyone else (bugs A20)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.sentinels import InProcessSandbox, desk, on, scope, source

from hankwatch.core.errors import JournalWriteError, ModelCallFailed, TemplateFault
from hankwatch.events.envelope import Event
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.sandbox.sandbox import Engine
from hankwatch.sentinels import gather
from hankwatch.sentinels.queue import MAX_WAITING_TRIGGERS
from hankwatch.sentinels.strategies import Batch, make_strategy
from hankwatch.stream.journal import Journal
from hankwatch.testing import Answer, ScriptedModel, after, failure, hang

BROKEN_TEMPLATE = {"userPromptText": "{{ events[0].data.nothing.there }}"}


async def test_a_failed_call_is_an_error_with_its_trigger_and_the_queue_goes_on(tmp_path: Path) -> None:
    answers = [failure("overloaded", retriable=True), "fine"]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [source()]):
        first = d.info()
        d.info()
        await d.manager.settle()
        (error,) = d.said("error")
        assert error["errorType"] == "llm-call-failed"
        assert (error["triggerNumber"], error["eventIds"], error["retriable"]) == (1, [first], True)
        assert error["consecutiveFailureCount"] == 1
        assert [data["triggerNumber"] for data in d.said("output")] == [2]


async def test_three_failures_in_a_row_unload_it_and_what_waited_is_named(tmp_path: Path) -> None:
    async with desk(tmp_path, failure("overloaded")) as d, d.manager.attach(scope(), [source()]):
        ids = [d.info() for _ in range(5)]
        await d.manager.settle()
        d.info()
        *failures, abandoned = d.said("error")
        assert [data["consecutiveFailureCount"] for data in failures] == [1, 2, 3]
        assert (abandoned["errorType"], abandoned["reason"], abandoned["count"]) == ("abandoned", "unload", 2)
        assert (abandoned["triggerNumbers"], abandoned["eventIds"]) == ([4, 5], ids[3:])
        (unloaded,) = d.said("unloaded")
        assert (unloaded["reason"], unloaded["llmCallCount"]) == ("consecutive-failures", 3)
        assert d.stream.events[-2].type == "sentinel.unloaded"


async def test_a_success_resets_the_count(tmp_path: Path) -> None:
    answers: list[Answer] = [failure("a"), failure("b"), "fine", failure("c"), failure("d")]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [source()]):
        for _ in range(5):
            d.info()
        await d.manager.settle()
        assert [data["consecutiveFailureCount"] for data in d.said("error")] == [1, 2, 1, 2]
        assert d.said("unloaded") == []


async def test_the_limit_of_failures_is_the_configs(tmp_path: Path) -> None:
    config = {"errorHandling": {"maxConsecutiveFailures": 1}}
    async with desk(tmp_path, failure("a")) as d, d.manager.attach(scope(), [source(**config)]):
        d.info()
        await d.manager.settle()
        assert d.said("unloaded")[0]["reason"] == "consecutive-failures"


STRATEGIES: list[dict[str, Any]] = [
    {"strategy": "immediate"},
    {"strategy": "debounce", "milliseconds": 1_000},
    {"strategy": "count", "threshold": 2},
    {"strategy": "timeWindow", "milliseconds": 1_000},
]
MODES: list[dict[str, Any]] = [
    {},
    {"structuredOutput": {"output": "enum", "enumValues": ["yes"]}},
    {"conversational": {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 3}}, "systemPromptText": "x"},
]


@pytest.mark.parametrize("execution", STRATEGIES, ids=lambda execution: str(execution["strategy"]))
@pytest.mark.parametrize("mode", MODES, ids=["text", "structured", "conversational"])
async def test_failures_are_counted_per_executed_trigger_whatever_the_strategy_and_mode(
    tmp_path: Path, execution: dict[str, Any], mode: dict[str, Any]
) -> None:
    answers: list[Answer] = [failure("a"), failure("b"), "yes", failure("c"), failure("d"), failure("e")]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [source(execution=execution, **mode)]):
        for _ in range(6):
            d.info()
            d.info()
            d.stream.advance(3_000)
            await d.manager.settle()
        counts = [data["consecutiveFailureCount"] for data in d.said("error") if data["errorType"] == "llm-call-failed"]
        assert counts == [1, 2, 1, 2, 3]
        assert d.said("unloaded")[0]["reason"] == "consecutive-failures"


@pytest.mark.parametrize("unload", [True, False])
async def test_a_template_that_no_longer_compiles_is_fatal_unless_the_config_says_otherwise(
    tmp_path: Path, unload: bool
) -> None:
    class Broken(InProcessSandbox):
        async def render(self, engine: Engine, source: str, context: Mapping[str, Any]) -> str:
            raise TemplateFault("no longer")

    made = source(errorHandling={"unloadOnFatalError": unload, "maxConsecutiveFailures": 3})
    async with desk(tmp_path, sandbox=Broken()) as d, d.manager.attach(scope(), [made]):
        for _ in range(4):
            d.info()
        await d.manager.settle()
        errors = [data for data in d.said("error") if data["errorType"] == "template-render-failed"]
        assert [data["retriable"] for data in errors] == [False] * (1 if unload else 3)
        unloaded = d.said("unloaded")[0]
        assert unloaded["reason"] == ("fatal-error" if unload else "consecutive-failures")
        assert unloaded.get("errorType") == ("template" if unload else None)


async def test_a_prompt_that_cannot_be_rendered_is_a_counted_failure_without_a_call(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**BROKEN_TEMPLATE)]):
        for _ in range(3):
            d.info()
        await d.manager.settle()
        assert {data["errorType"] for data in d.said("error")} == {"template-render-failed"}
        assert (d.said("unloaded")[0]["reason"], d.said("unloaded")[0]["llmCallCount"]) == ("consecutive-failures", 0)


async def test_an_empty_reply_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    reply = ModelReply(" \n", 5, 0, 0.25, finish_reason="content_filter")
    async with desk(tmp_path, reply) as d, d.manager.attach(scope(), [source()]) as attached:
        d.info()
        await d.manager.settle()
        assert "content_filter" in d.said("error")[0]["message"]
        assert d.said("output") == []
        assert attached.cost_usd == 0.25


async def test_a_failed_calls_cost_counts_and_an_unknown_one_is_not_zero(tmp_path: Path) -> None:
    def failed(cost_usd: float | None) -> ModelCallFailed:
        return ModelCallFailed("m", "overloaded", retriable=True, cost_usd=cost_usd)

    async with desk(tmp_path, [failed(0.5), failed(None)]) as d, d.manager.attach(scope(), [source()]) as attached:
        d.info()
        d.info()
        await d.manager.settle()
        assert (attached.cost_usd, attached.unpriced_calls) == (0.5, 1)


async def test_an_entry_that_cannot_be_written_is_not_a_counted_failure_and_comes_later(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source()]):
        report = d.report()
        elsewhere = tmp_path / "elsewhere.md"
        elsewhere.write_text("mine")
        report.unlink()
        report.symlink_to(elsewhere)
        for _ in range(4):
            d.info()
        await d.manager.settle()
        assert [data["errorType"] for data in d.said("error")] == ["file-write-failed"] * 4
        assert {data["consecutiveFailureCount"] for data in d.said("error")} == {0}
        report.unlink()
        d.info()
        await d.manager.settle()
        assert report.read_text() == "\n---\nseen\n" * 5
        assert elsewhere.read_text() == "mine"
        assert d.said("unloaded") == []


async def test_a_report_that_failed_to_the_end_is_completed_when_the_sentinel_unloads(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        async with d.manager.attach(scope(), [source()]):
            report = d.report()
            report.unlink()
            report.mkdir()
            d.info()
            await d.manager.settle()
            report.rmdir()
        assert report.read_text() == "\n---\nseen\n"
        assert d.stream.events[-1].type == "sentinel.unloaded"


async def test_a_flood_drops_the_oldest_and_says_so_once(tmp_path: Path) -> None:
    async with desk(tmp_path, hang()) as d:
        async with d.manager.attach(scope(), [source()]) as attached:
            d.info()
            await attached.drain(0)  # the first one hangs, and is given up
            for _ in range(MAX_WAITING_TRIGGERS + 20):
                d.info()
        overflow, abandoned = d.said("error")[1:]
        assert (overflow["errorType"], overflow["count"]) == ("queue-overflow", 20)
        assert (abandoned["errorType"], abandoned["count"]) == ("abandoned", MAX_WAITING_TRIGGERS)
        unloaded = d.said("unloaded")[0]
        assert (unloaded["droppedTriggers"], unloaded["droppedEvents"]) == (20, 20)


async def test_an_overflow_is_told_when_the_queue_has_emptied(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source()]):
        for _ in range(2):
            for _ in range(MAX_WAITING_TRIGGERS + 1):
                d.info()
            await d.manager.settle()
        assert [(data["errorType"], data["count"]) for data in d.said("error")] == [("queue-overflow", 1)] * 2
        assert len(d.said("output")) == 2 * MAX_WAITING_TRIGGERS


async def test_failing_hanging_and_flooded_sentinels_leave_the_others_alone(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Answer:
        match request.labels["sentinelId"]:
            case "raising":
                raise ValueError("a client with a bug")
            case "hanging":
                return hang()
            case _:
                return "fine"

    sentinels = [source(name) for name in ("raising", "broken", "hanging", "fine")]
    sentinels[1] = source("broken", **BROKEN_TEMPLATE)
    async with desk(tmp_path, answer) as d:
        async with d.manager.attach(scope(), sentinels) as attached:
            ids = [d.info() for _ in range(50)]
            await attached.drain(0.0)
            assert d.triggers("fine") == [[event_id] for event_id in ids]
            assert len(d.said("output", sentinel_id="fine")) == 50
            assert d.said("unloaded", sentinel_id="raising")[0]["reason"] == "consecutive-failures"
            assert d.said("error", sentinel_id="raising")[0]["message"] == "ValueError: a client with a bug"
            assert d.said("unloaded", sentinel_id="broken")[0]["reason"] == "consecutive-failures"
            assert d.said("error", sentinel_id="hanging")[0]["count"] == 50
        assert d.stream.listener_failures == []


async def test_a_sentinel_that_breaks_while_matching_is_unloaded_and_the_others_see_the_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def on_match(self, events: Sequence[Event], at_ms: int) -> list[Batch]:
            raise RuntimeError("cannot count")

        def next_due_ms(self) -> int | None:
            return None

        def on_due(self, at_ms: int) -> list[Batch]:
            return []

        def drain(self, at_ms: int) -> list[Batch]:
            return []

    made = iter([Broken(), None])
    monkeypatch.setattr(gather, "make_strategy", lambda execution: next(made) or make_strategy(execution))
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source("broken"), source("fine")]):
        event_id = d.info()
        await d.manager.settle()
        assert d.triggers("fine") == [[event_id]]
        unloaded = d.said("unloaded", sentinel_id="broken")[0]
        assert (unloaded["reason"], unloaded["errorType"]) == ("fatal-error", "corruption")


async def test_regexes_that_run_out_of_time_unload_their_sentinel(tmp_path: Path) -> None:
    slow = {"path": "message", "operator": "matches", "value": r"^(a|aa)+$(?=)"}
    config = {"trigger": {"type": "event", "on": ["info"], "conditions": [slow]}}
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source("slow", **config), source("fine")]):
        for _ in range(4):
            d.info("a" * 40 + "!")
        await d.manager.settle()
        unloaded = d.said("unloaded", sentinel_id="slow")[0]
        assert (unloaded["reason"], unloaded["errorType"]) == ("fatal-error", "resource")
        assert len(d.triggers("fine")) == 4


async def test_a_journal_that_fails_under_a_sentinel_ends_the_run_with_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Journal, events: object, lines: object) -> None:
        raise JournalWriteError(self.path, "disk full")

    async def run() -> None:
        async with desk(tmp_path) as d, d.manager.attach(scope(), [source()]):
            d.info()
            monkeypatch.setattr(Journal, "append_lines", full)
            await d.clock.sleep(1_000)

    with pytest.raises(JournalWriteError):
        await run()


async def test_a_sentinel_without_a_conditions_path_match_is_never_asked(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(trigger=on("info", code="wanted"))]):
        d.info()
        await d.manager.settle()
        assert d.triggers() == []


async def test_a_model_that_swallows_its_cancellation_cannot_speak_after_the_unload(tmp_path: Path) -> None:
    class Stubborn(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                pass
            return ModelReply("too late", 1, 1, 0.0)

    async with desk(tmp_path, model=Stubborn()) as d:
        async with d.manager.attach(scope(), [source()]) as attached:
            d.info()
            await attached.drain(0.0)
            d.info()
        await anyio.wait_all_tasks_blocked()
    assert [event.type for event in d.stream.events[-2:]] == ["sentinel.error", "sentinel.unloaded"]
    assert d.said("output") == []


async def test_what_a_sentinel_does_is_told_as_one_of_four_states(tmp_path: Path) -> None:
    def told() -> tuple[str, str]:
        (state,), (summary,) = attached.states(), attached.summaries()
        assert state["lifecycle"] == summary.lifecycle
        return state["lifecycle"], state["status"]

    execution = {"strategy": "count", "threshold": 2}
    async with desk(tmp_path, after(5, "late")) as d:
        async with d.manager.attach(scope(), [source(execution=execution)]) as attached:
            assert told() == ("loaded", "active")
            d.info()
            assert told() == ("active", "active")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(attached.drain, 10.0)
                await anyio.wait_all_tasks_blocked()
                d.info()  # what is seen while it finishes belongs to the end
                assert told() == ("completing", "active")
                await d.clock.advance(10)
            assert told() == ("completing", "active")
            d.info()  # the codon is tried again
            assert told() == ("active", "active")
        assert told() == ("unloaded", "unloaded")


async def test_an_unload_cancels_the_call_in_flight_and_is_the_last_word(tmp_path: Path) -> None:
    ended: list[str] = []

    class Watched(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            try:
                return await super().complete(request)
            finally:
                ended.append("call")

    async with desk(tmp_path, model=Watched(hang())) as d:
        async with d.manager.attach(scope(), [source()]):
            event_id = d.info()
            await anyio.wait_all_tasks_blocked()
        await anyio.wait_all_tasks_blocked()
        assert ended == ["call"]
        abandoned, unloaded = d.said("error", "unloaded")
        assert (abandoned["eventIds"], abandoned["eventCounts"]) == ([event_id], [1])
        assert (unloaded["llmCallCount"], unloaded["finalCost"]) == (1, None)
        assert d.stream.events[-1].type == "sentinel.unloaded"


@pytest.mark.parametrize("cost_usd", [-1.0, float("nan"), float("inf")])
async def test_what_cannot_be_a_cost_is_an_unknown_one(tmp_path: Path, cost_usd: float) -> None:
    async with desk(tmp_path, "fine", model=ScriptedModel("fine", cost_usd=cost_usd)) as d:
        async with d.manager.attach(scope(), [source()]) as attached:
            d.info("a")
            await d.manager.settle()
        assert attached.summaries()[0].unpriced_calls == 1
        assert d.said("unloaded")[0]["finalCost"] is None
