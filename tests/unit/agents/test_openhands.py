"""What the recorded streams of openhands do not show."""

import json
from typing import Any

import pytest
from tests.support.dialects import fed, results

from hankwatch.agents.openhands import OpenhandsDialect
from hankwatch.agents.signals import Result, Started, ToolUsed


def openhands(kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": "i", "timestamp": "2026-11-30T15:18:34.5", "source": "agent", "kind": kind, **fields}


AGENT_SAYS = openhands("MessageEvent", llm_message={"role": "assistant", "content": [{"type": "text", "text": "Hi."}]})
OBSERVED = openhands("ObservationEvent", tool_name="terminal", tool_call_id="t", observation={"content": []})


@pytest.mark.parametrize(
    ("last", "success"),
    [
        (AGENT_SAYS, True),
        (openhands("ActionEvent", tool_name="finish", tool_call_id="t", action={"message": "Hi."}), True),
        (OBSERVED, False),
        (openhands("ConversationErrorEvent", code="LLMAuthenticationError", detail="bad key"), False),
    ],
)
def test_openhands_finishes_well_when_the_agent_had_the_last_word(last: dict[str, Any], success: bool) -> None:
    dialect = OpenhandsDialect()
    fed(dialect, AGENT_SAYS, last)
    [result] = dialect.feed(b"Agent finished")
    assert isinstance(result, Result)
    assert (result.success, result.text) == (success, "Hi." if success else "finished without an answer of the agent")


def test_openhands_prints_its_session_as_text() -> None:
    assert OpenhandsDialect().feed(b"Conversation ID: " + b"0a" * 16) == [Started("0a" * 16)]


@pytest.mark.parametrize(
    ("observation", "outcome"),
    [
        ({"content": [], "is_error": False, "exit_code": 0}, "ok"),
        ({"content": [], "is_error": False, "exit_code": -1}, "ok"),
        ({"content": [], "is_error": False, "exit_code": 2}, "error"),
        ({"content": [], "is_error": True}, "error"),
    ],
)
def test_openhands_outcome_comes_from_flag_and_exit_code(observation: dict[str, Any], outcome: str) -> None:
    [result] = results(fed(OpenhandsDialect(), {**OBSERVED, "observation": observation}))
    assert result.outcome == outcome


def test_an_action_that_openhands_was_not_allowed_is_denied() -> None:
    line = openhands("UserRejectObservation", tool_call_id="t", tool_name="terminal", rejection_reason="No.")
    [result] = results(fed(OpenhandsDialect(), line))
    assert (result.outcome, result.text) == ("denied", "No.")


def test_openhands_inputs_are_what_the_model_wrote_without_what_the_program_asked_for() -> None:
    action = {"command": "ls", "timeout": None, "kind": "TerminalAction"}
    written = json.dumps({"security_risk": "LOW", "summary": "next", "command": "ls"})
    call = openhands("ActionEvent", tool_name="terminal", tool_call_id="t", action=action)
    for line in (call, {**call, "tool_call": {"arguments": written}}):
        [used] = [signal for signal in fed(OpenhandsDialect(), line) if isinstance(signal, ToolUsed)]
        assert used.input == {"command": "ls"}
