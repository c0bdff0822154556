"""Structured answers: read from whatever a model makes of "JSON only", repaired once, reported (bugs A14)."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.sentinels import InProcessSandbox, desk, scope, source

from hankwatch.llm.client import ModelInfo, ModelReply, Unavailable
from hankwatch.sentinels.answers import parse, read_answer, unfenced
from hankwatch.sentinels.schema import AnswerSchema
from hankwatch.testing import Answer, ScriptedModel, failure, hang

VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["ok"],
    "additionalProperties": False,
}
OBJECT = {"output": "object", "schemaStr": json.dumps(VERDICT)}
ARRAY = {"output": "array", "schemaStr": '{"type": "integer"}'}
ENUM = {"output": "enum", "enumValues": ["calm", "stuck", "1"]}
GOOD = '{"ok": true, "why": "fine"}'


class Strict(ScriptedModel):
    """A model whose provider enforces schemas."""

    def check(self, model: str) -> ModelInfo | Unavailable:
        return ModelInfo(model, provider="scripted", supports_schema=True)


def structured(wanted: dict[str, Any], **config: Any) -> Any:
    return source(structuredOutput=wanted, **config)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n  {GOOD}\r\n",
        f"\ufeff{GOOD}",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"```JSON  \r\n{GOOD}\r\n```  \r\n",
        f"~~~json\n{GOOD}\n~~~",
        f"````json\n{GOOD}\n````",
        f"```json {GOOD}```",
        f"```{GOOD}```",
    ],
)
def test_a_fence_around_the_whole_answer_is_removed(text: str) -> None:
    assert parse(unfenced(text)) == {"ok": True, "why": "fine"}


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n```json\n{GOOD}\n```",
        f"```json\n{GOOD}\n```\nand\n```json\n{GOOD}\n```",
        f"```json\n{GOOD}",
        "```",
        "",
        GOOD + GOOD,
        '{"ok": NaN}',
        "[" * 100_000,
        "[" * 200 + "]" * 200,
        "9" * 5_000,
    ],
)
def test_anything_else_around_or_instead_of_the_json_is_no_answer(text: str) -> None:
    with pytest.raises(ValueError):
        parse(unfenced(text))


def test_line_breaks_inside_a_string_are_part_of_it() -> None:
    assert parse('{"why": "one\ntwo\tthree\r\nfour"}') == {"why": "one\ntwo\tthree\r\nfour"}


def test_what_a_journal_cannot_hold_is_cleaned_before_it_is_judged() -> None:
    assert parse('["\\ud800", 36893488147419103232]') == ["\ufffd", "36893488147419103232"]


@pytest.mark.parametrize("text", ["stuck", ' "stuck"\n', "```\nstuck\n```", '{"value": "stuck"}'])
async def test_a_word_of_an_enum_may_come_bare_quoted_fenced_or_as_the_field_asked_for(text: str) -> None:
    schema = AnswerSchema("enum", {"type": "string", "enum": ["calm", "stuck"]}, None, None)
    assert await read_answer(text, schema, InProcessSandbox()) == ("stuck", ())


@pytest.mark.parametrize("text", ["Stuck", "it is stuck", '"lost"', '["stuck"]'])
async def test_a_word_that_is_not_one_of_the_enum_is_an_error(text: str) -> None:
    schema = AnswerSchema("enum", {"type": "string", "enum": ["calm", "stuck"]}, None, None)
    _, errors = await read_answer(text, schema, InProcessSandbox())
    assert errors


@pytest.mark.parametrize(
    ("wanted", "reply", "content", "line"),
    [
        (OBJECT, f"```json\n{GOOD}\n```", {"ok": True, "why": "fine"}, '{"ok":true,"why":"fine"}\n'),
        (ARRAY, "[1, 2]", [1, 2], "[1,2]\n"),
        (ENUM, "stuck", "stuck", '"stuck"\n'),
        (ENUM, "1", "1", '"1"\n'),
    ],
)
async def test_a_valid_answer_is_one_compact_line_of_the_report_and_a_pretty_last_value(
    tmp_path: Path, wanted: dict[str, Any], reply: str, content: Any, line: str
) -> None:
    output = {"file": "facts.jsonl", "lastValueFile": "last.json"}
    async with desk(tmp_path, reply) as d, d.manager.attach(scope(), [structured(wanted, output=output)]):
        d.info()
        d.info()
        await d.manager.settle()
        assert [(data["outputType"], data["content"]) for data in d.said("output")] == [("structured", content)] * 2
        folder = tmp_path / ".hankweave" / "sentinels" / "outputs" / "narrator"
        assert (folder / "facts.jsonl").read_text() == line * 2
        last = (folder / "last.json").read_text()
        assert json.loads(last) == content
        assert last == json.dumps(content, indent=2) + "\n"


async def test_the_default_report_of_structured_answers_is_jsonl(tmp_path: Path) -> None:
    async with desk(tmp_path, GOOD) as d, d.manager.attach(scope(), [structured(OBJECT)]):
        assert d.report().suffix == ".jsonl"
        assert d.said("loaded")[0]["report"]["joinString"] is None


async def test_an_invalid_answer_is_asked_for_once_more_with_its_errors_and_both_calls_count(tmp_path: Path) -> None:
    answers: list[Answer] = [ModelReply('{"ok": "yes"}', 10, 20, 0.25), ModelReply(GOOD, 30, 5, 0.5)]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [structured(OBJECT)]) as attached:
        d.info()
        await d.manager.settle()
        (output,) = d.said("output")
        assert output["content"] == json.loads(GOOD)
        assert (output["cost"], output["tokens"]) == (0.75, {"input": 40, "output": 25})
        assert (attached.cost_usd, attached.summaries()[0].calls) == (0.75, 2)
        assert isinstance(d.model, ScriptedModel)
        first, again = d.model.requests
        assert [message.role for message in again.messages] == ["user", "assistant", "user"]
        assert again.messages[:1] == first.messages
        assert again.messages[1].content == '{"ok": "yes"}'
        assert "/ok" in again.messages[2].content
        assert again.labels["repair"] == 1
        assert d.said("error") == []


async def test_an_answer_that_is_still_invalid_is_an_error_that_quotes_its_beginning(tmp_path: Path) -> None:
    long_answer = "Sorry, \x1b[31mno JSON today. " + "blah " * 200
    async with desk(tmp_path, long_answer) as d, d.manager.attach(scope(), [structured(OBJECT)]) as attached:
        event_id = d.info()
        await d.manager.settle()
        (error,) = d.said("error")
        assert (error["errorType"], error["retriable"]) == ("structured-output-invalid", True)
        assert (error["triggerNumber"], error["eventIds"], error["consecutiveFailureCount"]) == (1, [event_id], 1)
        assert 'it begins "Sorry, no JSON today. blah' in error["message"]
        assert len(error["message"]) < 500
        assert d.said("output") == []
        assert attached.cost_usd == 0.002


async def test_a_repair_that_fails_is_a_failed_call(tmp_path: Path) -> None:
    answers: list[Answer] = ["no", failure("overloaded", retriable=True)]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [structured(OBJECT)]):
        d.info()
        await d.manager.settle()
        assert [(e["errorType"], e["retriable"]) for e in d.said("error")] == [("llm-call-failed", True)]


async def test_the_price_of_an_answer_is_unknown_when_that_of_one_of_its_calls_is(tmp_path: Path) -> None:
    answers: list[Answer] = [ModelReply("no", 1, 1, None), ModelReply(GOOD, 1, 1, 0.5)]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [structured(OBJECT)]) as attached:
        d.info()
        await d.manager.settle()
        assert d.said("output")[0]["cost"] is None
        assert (attached.cost_usd, attached.unpriced_calls) == (0.5, 1)


async def test_a_truncated_answer_is_told_to_be_shorter(tmp_path: Path) -> None:
    answers: list[Answer] = [ModelReply('{"ok": tr', 1, 1, 0.0, finish_reason="length"), GOOD]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [structured(OBJECT)]):
        d.info()
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        assert "be shorter" in d.model.requests[1].messages[-1].content
        assert "truncated" not in d.said("output")[0]


async def test_invalid_answers_unload_a_sentinel_like_other_failures(tmp_path: Path) -> None:
    async with desk(tmp_path, "never") as d, d.manager.attach(scope(), [structured(OBJECT)]):
        for _ in range(5):
            d.info()
        await d.manager.settle()
        assert d.said("unloaded")[0]["reason"] == "consecutive-failures"
        assert d.said("unloaded")[0]["llmCallCount"] == 6


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (OBJECT, ["a single JSON object", '"required":["ok"]', "called 'Verdict'. What it is: what to think of it"]),
        (ARRAY, ["a single JSON array", '{"type":"array","items":{"type":"integer"}}']),
        (ENUM, ['exactly one of these JSON strings and nothing else: "calm", "stuck", "1"']),
    ],
)
async def test_a_model_without_a_schema_mode_is_told_in_the_prompt(
    tmp_path: Path, wanted: dict[str, Any], said: list[str]
) -> None:
    named = {**wanted, "schemaName": "Verdict", "schemaDescription": "what to think of it"}
    async with desk(tmp_path, GOOD) as d, d.manager.attach(scope(), [structured(named)]):
        d.info()
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        request = d.model.requests[0]
        assert request.json_schema is None
        assert request.messages[-1].content.startswith("What happened?\n\nAnswer with")
        for text in said:
            assert text in request.messages[-1].content


@pytest.mark.parametrize(
    ("wanted", "reply", "content"),
    [
        (OBJECT, GOOD, json.loads(GOOD)),
        (ARRAY, '{"items": [1]}', [1]),
        (ENUM, '{"value": "calm"}', "calm"),
    ],
)
async def test_a_provider_that_enforces_schemas_is_given_one_of_an_object_and_the_answer_is_unwrapped(
    tmp_path: Path, wanted: dict[str, Any], reply: str, content: Any
) -> None:
    named = {**wanted, "schemaName": "verdict"}
    async with desk(tmp_path, model=Strict(reply)) as d, d.manager.attach(scope(), [structured(named)]):
        d.info()
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        request = d.model.requests[0]
        assert request.json_schema is not None
        assert (request.json_schema["type"], request.schema_name) == ("object", "verdict")
        assert request.messages[-1].content == "What happened?"
        assert [data["content"] for data in d.said("output")] == [content]


async def test_a_drain_that_ends_during_the_repair_names_the_trigger(tmp_path: Path) -> None:
    async with desk(tmp_path, ["no", hang()]) as d, d.manager.attach(scope(), [structured(OBJECT)]) as attached:
        d.info()
        await anyio.wait_all_tasks_blocked()
        await attached.drain(0.0)
        assert [(e["errorType"], e["count"]) for e in d.said("error")] == [("abandoned", 1)]
        assert attached.summaries()[0].calls == 2


async def test_text_answers_are_untouched_by_all_this(tmp_path: Path) -> None:
    async with desk(tmp_path, f"```json\n{GOOD}\n```") as d, d.manager.attach(scope(), [source()]):
        d.info()
        await d.manager.settle()
        (output,) = d.said("output")
        assert (output["outputType"], output["content"]) == ("text", f"```json\n{GOOD}\n```")
