import math
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.payloads import sample

from hankwatch.events.activity import AssistantAction, FileUpdated, FromToolUse, ToolResult
from hankwatch.events.catalogue import PAYLOADS
from hankwatch.events.observers import JournalRepaired, SentinelUnloaded
from hankwatch.events.payload import Payload
from hankwatch.events.run import CodonCompleted, ModelUsage, TokenUsage
from hankwatch.events.shapes import CodonExecution, ExitSuccess

EVERY_PAYLOAD = pytest.mark.parametrize("model", PAYLOADS.values(), ids=PAYLOADS.keys())


def completed(**changes: Any) -> CodonCompleted:
    right: dict[str, Any] = {
        "codon_id": "c",
        "success": True,
        "cost": 0.5,
        "duration": 4,
        "exit_status": ExitSuccess(),
    }
    return CodonCompleted(**(right | changes))


@EVERY_PAYLOAD
def test_a_class_is_named_after_its_type(model: type[Payload]) -> None:
    parts = model.TYPE.replace("_", ".").split(".")
    expected = "".join(part[0].upper() + part[1:] for part in parts)
    assert model.__name__ == {"Error": "ErrorEvent"}.get(expected, expected)


@EVERY_PAYLOAD
def test_every_payload_reads_back_what_it_dumps(model: type[Payload]) -> None:
    for full in (True, False):
        payload = sample(model, full=full)
        assert model.model_validate(payload.dump()) == payload


@EVERY_PAYLOAD
def test_an_unknown_key_is_refused_on_emission(model: type[Payload]) -> None:
    with pytest.raises(ValidationError, match="misspelled"):
        model.model_validate(sample(model).dump() | {"misspelled": 1})


@EVERY_PAYLOAD
def test_no_optional_field_is_dumped_as_null(model: type[Payload]) -> None:
    nullable = {"cost", "totalCost", "cumulativeCost", "costUsd", "finalCost", "tokens"}
    nulls = {key for key, value in sample(model, full=False).dump().items() if value is None}
    assert nulls <= nullable


def test_keys_are_the_contracts_camel_case() -> None:
    result = ToolResult(
        codon_id="c#1",
        base_codon_id="c",
        tool_use_id="t1",
        tool_name="Bash",
        result="ok",
        truncated=False,
        original_length=2,
        execution_time_ms=5,
        is_error=False,
        outcome="ok",
    )
    assert result.dump() == {
        "codonId": "c#1",
        "baseCodonId": "c",
        "toolUseId": "t1",
        "toolName": "Bash",
        "result": "ok",
        "truncated": False,
        "originalLength": 2,
        "executionTimeMs": 5,
        "isError": False,
        "outcome": "ok",
    }


def test_an_unknown_cost_is_null_and_never_zero() -> None:
    assert completed(cost=None).dump()["cost"] is None


def test_spellings_that_are_no_camel_case_are_kept() -> None:
    usage = ModelUsage(input_tokens=1, output_tokens=2, cost_usd=None)
    tokens = TokenUsage(
        codon_id="c",
        input_tokens=1,
        output_tokens=2,
        cache_creation_tokens=0,
        cache_read_tokens=0,
        total_cost=None,
        model_usage={"m/x": usage},
    )
    assert tokens.dump()["modelUsage"] == {"m/x": {"inputTokens": 1, "outputTokens": 2, "costUSD": None}}
    assert JournalRepaired(size_bytes=3, action="newline").dump() == {"bytes": 3, "action": "newline"}


def test_free_form_objects_come_out_as_they_went_in() -> None:
    tool_input = {"file_path": "a", "limit": None, "snake_case": {"nested_key": [None, 1.0, True]}}
    action = AssistantAction(codon_id="c", action="tool_use", content="", tool_name="Read", tool_input=tool_input)
    assert action.dump()["toolInput"] == tool_input


def test_nested_optionals_are_omitted_too() -> None:
    update = FileUpdated(path="a.py", filename="a.py", action="created", source=FromToolUse(tool_use_id="t1"))
    assert update.dump() == {
        "path": "a.py",
        "filename": "a.py",
        "action": "created",
        "source": {"kind": "tool_use", "toolUseId": "t1"},
    }


def test_a_codons_state_record_may_have_more_keys() -> None:
    record = CodonExecution.model_validate({"codonId": "c", "status": "running", "startTime": "t", "claudePid": 7})
    assert record.model_dump()["claudePid"] == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"success": "true"},
        {"success": 1},
        {"cost": "0.5"},
        {"cost": -1},
        {"cost": math.nan},
        {"duration": True},
        {"codon_id": 5},
        {"exit_status": {"type": "exploded"}},
        {"exit_status": {"type": "killed"}},
        {"failure_reason": {"type": "bad-luck", "retriable": True}},
    ],
)
def test_emission_is_strict(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        completed(**wrong)


def test_a_payload_cannot_be_changed() -> None:
    payload = completed()
    with pytest.raises(ValidationError):
        payload.success = False  # type: ignore[misc]


def test_a_whole_duration_stays_whole() -> None:
    assert repr(completed(duration=4).dump()["duration"]) == "4"


def test_dropped_triggers_show_in_the_unloading() -> None:
    unloaded = SentinelUnloaded(
        sentinel_id="s",
        codon_id="c",
        reason="codon-complete",
        final_cost=None,
        llm_call_count=2,
        dropped_triggers=3,
        dropped_events=40,
    )
    assert unloaded.dump() == {
        "codonId": "c",
        "sentinelId": "s",
        "reason": "codon-complete",
        "finalCost": None,
        "llmCallCount": 2,
        "droppedTriggers": 3,
        "droppedEvents": 40,
    }
