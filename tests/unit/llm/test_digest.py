"""What the builtin models reply."""

from collections.abc import Mapping
from typing import Any

import pytest

from hankwatch.llm.builtin import BuiltinModels, estimate_tokens
from hankwatch.llm.client import Message, ModelReply, ModelRequest
from hankwatch.llm.digest import digest


def _event(kind: str, second: int = 0, **data: Any) -> Mapping[str, Any]:
    return {"id": "x", "timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "type": kind, "data": data}


def test_the_digest_states_counts_tools_errors_files_and_usage() -> None:
    events = [
        _event("assistant.action", 1, action="tool_use", content="", toolName="Bash", toolInput={"command": "ls"}),
        _event("tool.result", 2, toolName="Bash", isError=True, result="Traceback: no app\n  File x"),
        _event("tool.result", 3, toolName="Bash", isError=True, result="Traceback: no app\n  File y"),
        _event("tool.result", 4, toolName="Edit", isError=False, result="done"),
        _event("file.updated", 5, path="src/app.py", action="created"),
        _event("file.updated", 6, path="src/app.py", action="modified"),
        _event("file.updated", 7, path="src/app.py", action="modified"),
        _event("token.usage", 8, codonId="fix", inputTokens=10, outputTokens=5, totalCost=0.25),
        _event("token.usage", 9, codonId="fix", inputTokens=20, outputTokens=5, cacheReadTokens=7, totalCost=0.5),
        _event("error", 10, message="disk is full\nreally"),
    ]
    assert digest(events) == (
        "# 10 events, 2026-01-01T00:00:01.000Z to 2026-01-01T00:00:10.000Z\n"
        "\n"
        "## Types\n\n"
        "- tool.result: 3\n- file.updated: 3\n- token.usage: 2\n- assistant.action: 1\n- error: 1\n"
        "\n"
        '## Actions\n\n- Bash {"command": "ls"}\n'
        "\n"
        "## Tools\n\n- Bash: 0 ok, 2 failed\n- Edit: 1 ok, 0 failed\n"
        "\n"
        "## Errors\n\n- Bash: Traceback: no app … File x\n- Bash: Traceback: no app … File y\n- error: disk is full\n"
        "\n"
        "## Files\n\n- src/app.py: created, modified 2 times\n"
        "\n"
        "## Usage\n\n- fix: 0.7500 USD; tokens 30 in, 10 out, 7 cache read\n"
    )


def test_the_digest_tells_what_the_agent_said_and_thought() -> None:
    events = [
        _event("assistant.action", action="thinking", content="Look first.\nThen act."),
        _event("assistant.action", action="message", content="Done."),
    ]
    assert "## Actions\n\n- thinking: Look first.\n- message: Done.\n" in digest(events)


def test_reported_totals_replace_the_increments() -> None:
    events = [
        _event("token.usage", codonId="a", inputTokens=10, totalCost=0.25),
        _event("token.usage", codonId="a", inputTokens=30, totalCost=0.5, isFinal=True),
        _event("codon.completed", codonId="a", success=True, cost=0.5),
    ]
    assert "- a: 0.5000 USD; tokens 30 in\n" in digest(events)


def test_an_unknown_price_makes_the_cost_a_lower_bound() -> None:
    events = [_event("token.usage", codonId="a", totalCost=cost) for cost in (0.25, None)]
    assert "- a: ≥ 0.2500 USD" in digest(events)


def test_a_cost_of_which_nothing_is_known_is_no_number() -> None:
    events = [_event("token.usage", codonId="a", inputTokens=10, totalCost=None)]
    assert "- a: cost unknown; tokens 10 in" in digest(events)


def test_a_failed_codon_is_an_error_with_its_reason() -> None:
    data: dict[str, Any] = {"codonId": "a", "success": False, "failureReason": {"type": "timeout", "retriable": False}}
    assert "- codon a failed: timeout" in digest([_event("codon.completed", **data)])


def test_a_long_list_is_counted_not_hidden() -> None:
    text = digest([_event("file.updated", path=f"{n}.py", action="created") for n in range(25)])
    assert "- 19.py: created\n- … 5 more\n" in text


def test_event_text_is_one_line_without_control_sequences() -> None:
    text = digest([_event("error", message="\x1b[31mred\x1b[0m " + "x" * 500 + "\n# not a heading")])
    line = next(line for line in text.splitlines() if line.startswith("- error: red"))
    assert len(line) <= 220
    assert "\x1b" not in text
    assert "not a heading" not in text


def test_nothing_happened() -> None:
    assert digest([]) == "# No events\n"


async def _reply(model: str, **fields: Any) -> ModelReply:
    return await BuiltinModels().complete(ModelRequest(model, **fields))


async def test_echo_returns_the_user_prompt() -> None:
    messages = (Message("system", "be brief"), Message("user", "what happened?"))
    reply = await _reply("builtin/echo", messages=messages)
    assert reply.text == "what happened?"
    assert reply.cost_usd == 0.0
    assert (reply.input_tokens, reply.output_tokens) == (2 + 4, 4)


async def test_digest_reads_the_events_not_the_prompt() -> None:
    reply = await _reply("builtin/digest", messages=(Message("user", "?"),), events=(_event("info", message="hi"),))
    assert reply.text.startswith("# 1 event,")


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_tokens_are_estimated_by_four_characters(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
