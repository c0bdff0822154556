"""What the recorded streams of cline do not show."""

from typing import Any

import pytest
from tests.support.dialects import fed, results

from hankwatch.agents.cline import ClineDialect
from hankwatch.agents.signals import Result, Spoke, Tokens, ToolFinished, ToolUsed, Used


def cline(kind: str, **event: Any) -> dict[str, Any]:
    return {"ts": "2026-11-30T15:18:34Z", "type": "agent_event", "event": {"type": kind, **event}}


def cline_tool(kind: str, call: str, name: str, **event: Any) -> dict[str, Any]:
    return cline(kind, contentType="tool", toolCallId=call, toolName=name, **event)


def cline_agent(kind: str, agent: str, parent: str | None) -> dict[str, Any]:
    return {"ts": "", "type": "hook_event", "hookEventName": kind, "agentId": agent, "parentAgentId": parent}


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        ({"output": {"result": "x", "success": True}}, "ok"),
        ({"output": [{"result": "x", "success": True}, {"result": "y", "success": False}]}, "error"),
        ({"output": {"error": "no such tool"}, "error": "no such tool"}, "error"),
        ({"output": [{"result": "", "error": "Command failed: Command was aborted", "success": False}]}, "cancelled"),
        ({"output": "plain"}, "ok"),
    ],
)
def test_cline_outcome_comes_from_every_part(event: dict[str, Any], outcome: str) -> None:
    [result] = results(fed(ClineDialect(), cline_tool("content_end", "t", "run_commands", **event)))
    assert (result.outcome, result.is_error) == (outcome, outcome != "ok")


def test_what_clines_sub_agents_do_belongs_to_the_calls_that_spawned_them() -> None:
    lines = [
        cline_agent("agent_start", "main", None),
        cline_tool("content_start", "A", "spawn_agent", input={}),
        cline_tool("content_start", "B", "spawn_agent", input={}),
        cline_agent("agent_start", "a", "main"),
        cline_tool("content_start", "a1", "run_commands", input={}),
        cline_agent("agent_start", "b", "main"),
        cline("content_end", contentType="text", text="of b"),
        cline_tool("content_end", "a1", "run_commands", output=[]),
        cline_agent("agent_end", "b", "main"),
        cline_agent("agent_end", "a", "main"),
        cline("content_end", contentType="text", text="of main"),
    ]
    signals = [s for s in fed(ClineDialect(), *lines) if isinstance(s, Spoke | ToolUsed | ToolFinished)]
    assert [signal.parent for signal in signals] == [None, None, "A", "B", "A", None]


def test_cline_states_the_cost_of_each_message() -> None:
    usage = {"inputTokens": 10, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 1, "cost": 0.5}
    assert fed(ClineDialect(), cline("usage", **usage)) == [Used(Tokens(6, 2, 1, 3), cost_usd=0.5)]


def test_an_aborted_run_of_cline_says_why() -> None:
    problem = cline("error", error={"message": "5 identical calls"}, recoverable=True)
    ended = {"ts": "", "type": "run_result", "finishReason": "aborted", "text": "Once more."}
    *_, result = fed(ClineDialect(), problem, ended)
    assert isinstance(result, Result)
    assert (result.success, result.text) == (False, "5 identical calls")
