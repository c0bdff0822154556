"""What the recorded streams of copilot do not show."""

from typing import Any

import pytest
from tests.support.dialects import fed, results

from hankwatch.agents.copilot import CopilotDialect
from hankwatch.agents.signals import Started


def copilot(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": "i", "parentId": "p", "timestamp": "2026-11-30T15:18:34Z"}


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        ({"success": True, "result": {"content": "x"}}, "ok"),
        ({"success": True, "result": {"content": "x"}, "shellExecution": {"exitCode": 2}}, "error"),
        ({"success": False, "error": {"message": "no", "code": "failure"}}, "error"),
        ({"success": False, "error": {"message": "no", "code": "denied"}}, "denied"),
    ],
)
def test_copilot_outcome_comes_from_flag_error_and_exit_code(data: dict[str, Any], outcome: str) -> None:
    [result] = results(fed(CopilotDialect(), copilot("tool.execution_complete", toolCallId="t", **data)))
    assert (result.outcome, result.is_error) == (outcome, outcome != "ok")


def test_equal_answers_of_copilots_shells_are_equal() -> None:
    lines = [
        copilot(
            "tool.execution_complete",
            toolCallId="t",
            success=True,
            result={"content": f"same\n<shellId: {number} completed with exit code 0>"},
        )
        for number in range(2)
    ]
    assert {result.text for result in results(fed(CopilotDialect(), *lines))} == {"same"}


def test_copilot_names_its_session_at_the_end() -> None:
    ended = {"type": "result", "sessionId": "s", "exitCode": 0, "usage": {}}
    signals = fed(CopilotDialect(), copilot("session.info"), ended)
    assert [signal.session_id for signal in signals if isinstance(signal, Started)] == ["", "s"]
