"""Agents that print again what they or an earlier codon of their session had printed: told and counted once (bugs A7)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran, run_here, stand_in, write_hank

CONTINUES = codon("two", continuationMode="continue-previous")
INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
TOKENS = ("inputTokens", "outputTokens")


def message(number: int, output: int, *, uuid: str | None = None) -> list[list[Any]]:
    """One message of the API as it comes: a line per block, each with the usage so far; the last says how it ended."""
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": f"think {number}"},
        {"type": "text", "text": f"say {number}"},
        {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"echo {number}"}},
    ]
    lines = []
    for index, block in enumerate(blocks):
        usage = {"input_tokens": 100, "output_tokens": output if block is blocks[-1] else 1}
        record: dict[str, Any] = {
            "type": "assistant",
            "uuid": uuid or f"u{number}-{index}",
            "message": {"id": f"msg_{number}", "content": [block], "usage": usage},
        }
        lines.append(["line", record])
    answer = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}"}]
    return [*lines, ["line", {"type": "user", "message": {"content": answer}}]]


def ends(cost_usd: float) -> list[list[Any]]:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": cost_usd}
    return [["line", {**result, "uuid": f"end-{cost_usd}"}], ["until_eof"]]


async def play(tmp_path: Path, *calls: list[Any]) -> Ran:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    items = [codon(), CONTINUES][: len(calls)]
    return await run_here(write_hank(tmp_path / "hank", *items), tmp_path / "run", environ=agent.environ)


def told(ran: Ran) -> list[tuple[str, str, str | None]]:
    """By codon: what its agent said and did."""
    return [
        (e.data["codonId"], e.type, e.data.get("content") or e.data.get("toolUseId"))
        for e in ran.of("assistant.action", "tool.result")
    ]


def of_message(codon_id: str, number: int) -> list[tuple[str, str, str | None]]:
    action = "assistant.action"
    said: list[tuple[str, str, str | None]] = [
        (codon_id, action, text) for text in (f"think {number}", f"say {number}", f"t{number}")
    ]
    return [*said, (codon_id, "tool.result", f"t{number}")]


def finals(ran: Ran) -> list[tuple[int, ...]]:
    return [tuple(e.data[name] for name in TOKENS) for e in ran.of("token.usage") if e.data.get("isFinal")]


def replayed(ran: Ran) -> list[int]:
    """The visible counter, by codon."""
    return [e.data["details"].get("replayed", 0) for e in ran.of("info") if e.data.get("code") == "left-out"]


@pytest.mark.parametrize("uuid", [None, "fresh"])
async def test_a_transcript_with_its_history_copied_into_it_counts_once(tmp_path: Path, uuid: str | None) -> None:
    first = [*message(1, 20), *message(2, 30)]
    copies = [*message(1, 20, uuid=uuid), *message(2, 30, uuid=uuid)]
    ran = await play(tmp_path, [INIT, *first, *copies, *message(3, 40), *ends(0.25)])
    assert told(ran) == [*of_message("one", 1), *of_message("one", 2), *of_message("one", 3)]
    assert finals(ran) == [(300, 90)], "each message once, with its last usage"
    assert ran.completed()["cost"] == 0.25
    assert replayed(ran) == [8]


@pytest.mark.parametrize("uuid", [None, "fresh"])
async def test_a_resumed_session_that_prints_its_history_again_counts_only_what_is_new(
    tmp_path: Path, uuid: str | None
) -> None:
    first = [INIT, *message(1, 20), *message(2, 30), *ends(0.25)]
    again = [INIT, *message(1, 20, uuid=uuid), *message(2, 30, uuid=uuid), *message(3, 40), *ends(0.5)]
    ran = await play(tmp_path, first, again)
    assert told(ran) == [*of_message("one", 1), *of_message("one", 2), *of_message("two", 3)]
    assert finals(ran) == [(200, 50), (100, 40)]
    assert replayed(ran) == [8]


async def test_an_event_that_a_command_prints_twice_is_one_event(tmp_path: Path) -> None:
    action = {"codonId": "x", "action": "message", "content": "hello"}
    event = {"id": "e-1", "timestamp": "2026-11-30T12:00:00.000Z", "type": "assistant.action", "data": action}
    (tmp_path / "lines").write_text(2 * f"{json.dumps(event)}\n" + '{"type":"result","subtype":"success"}\n')
    hank = write_hank(tmp_path / "hank", codon(agent=f"exec:cat {tmp_path / 'lines'}"))
    ran = await run_here(hank, tmp_path / "run")
    assert told(ran) == [("one", "assistant.action", "hello")]
