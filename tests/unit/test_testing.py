"""The doubles that hankwatch supports for its users' tests."""

from pathlib import Path

import anyio
import pytest

from hankwatch.core.errors import ModelCallFailed
from hankwatch.events.envelope import Event
from hankwatch.events.run import Info
from hankwatch.llm.client import Message, ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.stream.reader import JournalReader
from hankwatch.testing import (
    ScriptedModel,
    VirtualClock,
    after,
    failure,
    hang,
    make_event,
    open_test_stream,
    recorded_agent,
)


def _ask(model: str = "any/model", **labels: str) -> ModelRequest:
    return ModelRequest(model, (Message("user", "hello"),), labels=labels)


async def test_one_answer_answers_every_call() -> None:
    model = ScriptedModel("fine", cost_usd=None)
    assert [(await model.complete(_ask())).text for _ in range(3)] == ["fine"] * 3
    assert (await model.complete(_ask())).cost_usd is None
    assert len(model.requests) == 4


async def test_a_script_is_followed_and_ends() -> None:
    exact = ModelReply("exact", 1, 2, None, "length")
    model = ScriptedModel(["first", failure("busy", retriable=True, status=503), exact])
    assert (await model.complete(_ask())).text == "first"
    with pytest.raises(ModelCallFailed) as failed:
        await model.complete(_ask())
    assert (failed.value.reason, failed.value.retriable, failed.value.status) == ("busy", True, 503)
    assert await model.complete(_ask()) == exact
    with pytest.raises(ModelCallFailed, match="no more answers"):
        await model.complete(_ask())


async def test_answers_can_go_by_sentinel_or_model() -> None:
    model = ScriptedModel({"narrator": "for the narrator", "any/model": "for the rest"})
    assert (await model.complete(_ask(sentinelId="narrator"))).text == "for the narrator"
    assert (await model.complete(_ask(sentinelId="other"))).text == "for the rest"
    with pytest.raises(ModelCallFailed, match="names neither"):
        await model.complete(_ask("another/model"))


async def test_answers_can_be_computed() -> None:
    model = ScriptedModel(lambda request: request.messages[-1].content.upper())
    assert (await model.complete(_ask())).text == "HELLO"


async def test_an_answer_can_take_its_time_or_for_ever() -> None:
    clock = VirtualClock()
    model = ScriptedModel([after(5, "late"), hang()], clock=clock)
    ended: list[tuple[float, str]] = []

    async def call() -> None:
        reply = await model.complete(_ask())
        ended.append((clock.monotonic(), reply.text))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        tasks.start_soon(call)
        await clock.advance(1_000)
        tasks.cancel_scope.cancel()
    assert ended == [(5, "late")]


def test_models_can_be_unavailable() -> None:
    assert isinstance(ScriptedModel(unavailable=["a/b"]).check("a/b"), Unavailable)


def test_the_script_says_what_its_model_can_do() -> None:
    info = ScriptedModel(context_tokens=1_000, supports_schema=True, cost_usd=None).check("a/b")
    assert info == ModelInfo("a/b", "scripted", context_tokens=1_000, priced=False, supports_schema=True)


def test_an_event_takes_an_instant_or_a_stamp() -> None:
    by_instant = make_event("tool.result", 1_000, toolName="Bash")
    assert (by_instant.timestamp, by_instant.data) == ("1970-01-01T00:00:01.000Z", {"toolName": "Bash"})
    by_stamp = make_event("info", "2026-01-01T00:00:00.250Z", message="hi", type="any key")
    assert by_stamp.at_ms == 1_767_225_600_250
    assert by_instant.id != by_stamp.id
    with pytest.raises(ValueError, match="not a stamp"):
        make_event("info", "yesterday")


def test_stream_time_passes_by_recorded_events_and_by_hand() -> None:
    stream = open_test_stream(start_ms=0)

    def emit(due_ms: int) -> None:
        stream.emit(Info(message=f"due at {due_ms}"))

    stream.emit_recorded(make_event("info", 5_000, message="one"))
    for due_ms in (6_000, 7_000):
        stream.timers.at(due_ms, emit)
    stream.advance(3_000)
    stream.emit(Info(message="last"))
    assert [(event.at_ms, event.data["message"]) for event in stream.of_type("info")] == [
        (5_000, "one"),
        (6_000, "due at 6000"),
        (7_000, "due at 7000"),
        (8_000, "last"),
    ]


def test_what_a_listener_raises_is_kept() -> None:
    stream = open_test_stream()

    def fail(event: Event) -> None:
        raise ValueError(event.type)

    stream.subscribe(fail, name="bad")
    stream.emit(Info(message="hi"))
    assert [failed.name for failed in stream.listener_failures] == ["bad"]


def test_a_test_stream_can_have_a_journal(tmp_path: Path) -> None:
    stream = open_test_stream(tmp_path / "events.jsonl")
    [event] = stream.emit(Info(message="hi"))
    stream.close()
    assert [read.id for read in JournalReader(tmp_path / "events.jsonl").read()] == [event.id]


def test_a_recorded_agent_is_named_by_its_file() -> None:
    assert recorded_agent(Path("runs/one.jsonl")) == "recorded:runs/one.jsonl"
