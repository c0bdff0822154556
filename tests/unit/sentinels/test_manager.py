"""A codon's sentinels from load to unload: what they see, what they emit, in which order."""

from pathlib import Path
from typing import Literal

import pytest
from tests.support.sentinels import desk, on, scope, source

from hankwatch.events.run import CodonCompleted, ResultingState, StateTransition, Transition
from hankwatch.events.shapes import ExitSuccess
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.testing import ScriptedModel, failure


async def test_a_match_becomes_a_trigger_an_output_and_a_report_entry(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source()]):
        event_id = d.info(after_ms=1_500)
        await d.manager.settle()
        assert d.said("triggered") == [
            {
                "codonId": "build",
                "baseCodonId": "build",
                "sentinelId": "narrator",
                "triggerNumber": 1,
                "strategy": "immediate",
                "eventCount": 1,
                "queueSize": 0,
                "cause": "match",
                "eventIds": [event_id],
                "at": "2000-01-01T00:00:01.500Z",
            }
        ]
        (output,) = d.said("output")
        assert (output["content"], output["cost"], output["eventCount"]) == ("seen", 0.001, 1)
        assert d.report().read_text() == "\n---\nseen\n"


async def test_loading_and_unloading_are_the_first_and_last_that_is_heard_of_a_sentinel(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        async with d.manager.attach(scope(), [source()]):
            d.info()
            await d.manager.settle()
        d.info()
        await d.manager.settle()
        kinds = [event.type for event in d.stream.events if event.type.startswith("sentinel.")]
    assert kinds == ["sentinel.loaded", "sentinel.triggered", "sentinel.output", "sentinel.unloaded"]
    unloaded = d.said("unloaded")[0]
    assert (unloaded["reason"], unloaded["finalCost"], unloaded["llmCallCount"]) == ("codon-complete", 0.001, 1)


async def test_loaded_tells_the_report_and_what_clients_are_sent(tmp_path: Path) -> None:
    settings = {"reportToWebsocket": {"outputs": False}}
    config = {"joinString": "\\n==\\n", "output": {"file": "./notes.md"}, "reportToWebsocket": {"triggers": True}}
    async with desk(tmp_path) as d:
        (tmp_path / "agentRoot" / "notes.md").write_text("older")
        async with d.manager.attach(scope("build#2"), [source(settings=settings, **config)]):
            (loaded,) = d.said("loaded")
    assert loaded["report"] == {
        "logFile": "agentRoot/notes.md",
        "lastValueFile": None,
        "format": "text",
        "joinString": "\n==\n",
        "startBytes": 5,
    }
    assert loaded["reportToWebsocket"] == {"lifecycle": True, "errors": True, "outputs": False, "triggers": True}
    assert (loaded["codonId"], loaded["baseCodonId"], loaded["source"]) == ("build#2", "build", "inline")


async def test_the_codons_settings_win_for_report_files(tmp_path: Path) -> None:
    settings = {"outputPaths": {"logFile": "codon.jsonl", "lastValueFile": "last.txt"}}
    config = {"output": {"format": "jsonl", "file": "own.jsonl"}}
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(settings=settings, **config)]):
        d.info()
        await d.manager.settle()
        folder = tmp_path / ".hankweave" / "sentinels" / "outputs" / "narrator"
        assert sorted(path.name for path in folder.iterdir()) == ["codon.jsonl", "last.txt"]
        assert (folder / "last.txt").read_text() == "seen"


async def test_a_sentinel_sees_nothing_of_its_own_or_others_work(tmp_path: Path) -> None:
    everything = {"trigger": on("*")}
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source("a", **everything), source("b", **everything)]):
        d.stream.emit(
            StateTransition(
                transition_type="SentinelStatesUpdated",
                transition=Transition(type="SentinelStatesUpdated", data={"sentinelStates": []}),
                resulting_state=ResultingState(current_run_id="r", run_count=1, total_cost=0.0, current_run_cost=0.0),
            )
        )
        event_id = d.info()
        await d.manager.settle()
        assert d.triggers() == [[event_id], [event_id]]


async def test_a_changed_report_is_told_once_and_reaches_no_sentinel(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source()]):
        for _ in range(3):
            d.info()
            await d.manager.settle()
            with d.report().open("a") as file:
                file.write("mine\n" if d.report().read_text().count("seen") == 1 else "")
        told = [event.data for event in d.stream.of_type("info") if event.data.get("code") == "report-changed"]
        assert len(told) == 1
        assert len(d.triggers()) == 3
        assert d.report().read_text() == "\n---\nseen\nmine\n\n---\nseen\n\n---\nseen\n"


async def test_a_sentinel_of_the_second_codon_sees_nothing_of_the_first(tmp_path: Path) -> None:
    completed = {"trigger": on("codon.completed")}

    def complete(codon_id: str) -> CodonCompleted:
        return CodonCompleted(codon_id=codon_id, success=True, cost=0.0, duration=1, exit_status=ExitSuccess())

    async with desk(tmp_path) as d:
        async with d.manager.attach(scope("one"), []) as attached:
            d.stream.emit(complete("one"))
            await attached.drain(10)
        async with d.manager.attach(scope("two"), [source("sweep", **completed)]) as attached:
            await attached.drain(10)
            (event,) = d.stream.emit(complete("two"))
            await attached.drain(10)
            assert d.triggers() == [[event.id]]
            assert len(d.said("output")) == 1


async def test_a_batch_is_carried_out_at_the_instant_its_timer_was_due(tmp_path: Path) -> None:
    config = {"execution": {"strategy": "debounce", "milliseconds": 1_000}, "userPromptText": "{{ world.currentTime }}"}
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**config)]):
        d.info()
        d.info(after_ms=900)
        d.info(after_ms=5_000)
        await d.manager.settle()
        assert [(data["cause"], data["at"], data["eventCount"]) for data in d.said("triggered")] == [
            ("quiet", "2000-01-01T00:00:01.900Z", 2)
        ]
        assert isinstance(d.model, ScriptedModel)
        assert d.model.requests[0].messages[-1].content == "2000-01-01T00:00:01.900Z"


async def test_a_steady_stream_keeps_one_timer(tmp_path: Path) -> None:
    async with desk(tmp_path, journaled=False) as d:
        slow = {"execution": {"strategy": "debounce", "milliseconds": 300_000, "maxWaitMilliseconds": None}}
        async with d.manager.attach(scope(), [source(**slow)]):
            for _ in range(50):
                d.info(after_ms=10)
            assert len(d.stream.timers._heap) == 1


async def test_triggers_of_one_sentinel_run_one_after_the_other_in_order(tmp_path: Path) -> None:
    running, most = 0, 0

    class Counting(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            nonlocal running, most
            running += 1
            most = max(most, running)
            reply = await super().complete(request)
            running -= 1
            return reply

    async with desk(tmp_path, model=Counting()) as d, d.manager.attach(scope(), [source()]):
        ids = [d.info() for _ in range(5)]
        await d.manager.settle()
        assert d.triggers() == [[event_id] for event_id in ids]
        assert most == 1
        assert [data["queueSize"] for data in d.said("triggered")] == [4, 3, 2, 1, 0]


async def test_the_system_prompt_is_rendered_too(tmp_path: Path) -> None:
    config = {"systemPromptText": "You watch {{ codon.name }} as {{ it.sentinel.id }}.", "userPromptText": "x"}
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source(**config)]):
        d.info()
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        assert [(m.role, m.content) for m in d.model.requests[0].messages] == [
            ("system", "You watch Build as narrator."),
            ("user", "x"),
        ]


async def test_a_truncated_reply_is_written_and_marked(tmp_path: Path) -> None:
    reply = ModelReply("half a", 10, 20, 0.5, finish_reason="length")
    async with desk(tmp_path, reply) as d, d.manager.attach(scope(), [source()]):
        d.info()
        await d.manager.settle()
        (output,) = d.said("output")
        assert (output["truncated"], output["tokens"]) == (True, {"input": 10, "output": 20})


async def test_an_unknown_price_is_null_and_makes_the_sum_a_lower_bound(tmp_path: Path) -> None:
    replies = [ModelReply("a", 1, 1, 0.25), ModelReply("b", 1, 1, None)]
    async with desk(tmp_path, replies) as d:
        async with d.manager.attach(scope(), [source()]) as attached:
            d.info()
            d.info()
            await d.manager.settle()
            assert (attached.cost_usd, attached.unpriced_calls) == (0.25, 1)
        assert [data["cost"] for data in d.said("output")] == [0.25, None]
        assert d.said("unloaded")[0]["finalCost"] == 0.25


async def test_no_known_price_at_all_is_no_sum(tmp_path: Path) -> None:
    async with desk(tmp_path, model=ScriptedModel(cost_usd=None)) as d:
        async with d.manager.attach(scope(), [source()]):
            d.info()
            await d.manager.settle()
        assert d.said("unloaded")[0]["finalCost"] is None


async def test_state_and_summary_tell_what_a_sentinel_did(tmp_path: Path) -> None:
    async with desk(tmp_path, ["one", failure("overloaded")]) as d:
        async with d.manager.attach(scope(), [source()]) as attached:
            d.info()
            d.info()
            await d.manager.settle()
            (state,) = attached.states()
            assert state == {
                "id": "narrator",
                "model": "scripted/model",
                "loadedAt": "2000-01-01T00:00:00.000Z",
                "llmCallCount": 2,
                "failedLLMCalls": 1,
                "lastLlmCallAt": "2000-01-01T00:00:00.000Z",
                "totalTriggers": 2,
                "totalCost": 0.001,
                "status": "active",
                "lifecycle": "active",
            }
        (summary,) = attached.summaries()
        assert (summary.fired, summary.failed, summary.calls, summary.unload_reason) == (2, 1, 2, "codon-complete")
        assert summary.report == d.said("loaded")[0]["report"]["logFile"]
        assert (attached.states()[0]["status"], attached.states()[0]["unloadReason"]) == ("unloaded", "codon-complete")


async def test_a_codon_that_ends_with_the_run_says_shutdown(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        async with d.manager.attach(scope(), [source()]) as attached:
            attached.unload_reason = "shutdown"
        assert d.said("unloaded")[0]["reason"] == "shutdown"


async def test_a_resumed_codon_goes_on_in_the_same_report(tmp_path: Path) -> None:
    reasons: tuple[Literal["shutdown", "codon-complete"], ...] = ("shutdown", "codon-complete", "shutdown")
    for reason in reasons:
        async with desk(tmp_path) as d:
            d.stream.advance(5_000)
            async with d.manager.attach(scope(), [source()]) as attached:
                d.info()
                await d.manager.settle()
                attached.unload_reason = reason
            if reason == "codon-complete":
                resumed = d.report().read_text()
    assert resumed == "\n---\nseen\n\n---\nseen\n"
    folder = tmp_path / ".hankweave" / "sentinels" / "outputs" / "narrator"
    assert len(list(folder.iterdir())) == 2


async def test_a_second_load_of_a_report_keeps_the_first_loads_beginning(tmp_path: Path) -> None:
    config = {"output": {"file": "notes.md"}}
    async with desk(tmp_path) as d:
        for codon_id in ("loop#0", "loop#1"):
            async with d.manager.attach(scope(codon_id), [source(**config)]):
                d.info()
                await d.manager.settle()
        assert [data["report"]["startBytes"] for data in d.said("loaded")] == [0, 0]
        d.report().unlink()
        async with d.manager.attach(scope("loop#2"), [source(**config)]):
            d.info()
            await d.manager.settle()
        assert d.report().read_text() == "\n---\nseen\n" * 3


async def test_a_codon_that_ends_in_its_own_failure_unloads_its_sentinels(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        with pytest.raises(KeyError):
            async with d.manager.attach(scope(), [source()]):
                raise KeyError("the codon's own failure")
        assert len(d.said("unloaded")) == 1
