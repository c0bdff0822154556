"""``exhaustWithPrompt``: the same session is prompted again until its context is full (reference 3.7)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon
from tests.support.laws import transition
from tests.support.runs import Ran, Standin, run_here, stand_in, write_hank

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
FULL = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "Prompt is too long"}
COMPACTED = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto"}}


def good(number: int, *lines: dict[str, Any]) -> list[Any]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    said = {"id": f"m{number}", "content": [{"type": "text", "text": f"part {number}"}], "usage": usage}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
    told = [{"type": "assistant", "message": said}, *lines, result]
    return [INIT, *(["line", line] for line in told), ["until_eof"]]


async def play(tmp_path: Path, *calls: list[Any], **fields: Any) -> tuple[Ran, Standin]:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    path = write_hank(tmp_path / "hank", codon(exhaustWithPrompt="Go on in <%AGENT_ROOT%>.", **fields))
    return await run_here(path, tmp_path / "run", environ=agent.environ), agent


async def test_the_session_is_prompted_again_until_the_context_is_full(tmp_path: Path) -> None:
    full = [INIT, ["line", FULL], ["until_eof"]]
    ran, agent = await play(tmp_path, good(1), good(2), full)
    assert ran.completed()["success"] is True
    extended = [event.data for event in ran.of("codon.extended")]
    assert [data["extensionNumber"] for data in extended] == [1, 2]
    assert [data["cumulativeTokens"]["inputTokens"] for data in extended] == [10, 20]
    assert [data["cumulativeCost"] for data in extended] == [0.25, 0.5]
    prompts = [call["stdin"]["message"]["content"][0]["text"] for call in agent.calls()]
    assert prompts == ["Do it.", *[f"Go on in {ran.root / 'agentRoot'}."] * 2]
    assert [call["argv"][call["argv"].index("--resume") + 1] for call in agent.calls()[1:]] == ["s-1"] * 2
    assert len(ran.of("codon.started")) == 1
    assert len([event for event in ran.events if transition(event) == "ExtensionCountUpdated"]) == 2


async def test_a_compacted_context_was_full(tmp_path: Path) -> None:
    ran, _ = await play(tmp_path, good(1), good(2, COMPACTED))
    assert ran.completed()["success"] is True
    assert len(ran.of("codon.extended")) == 1
    (record,) = ran.of("state.snapshot")[-1].data["completedCodons"]
    assert (record["contextExceeded"], record["extensionCount"]) == (True, 1)


async def test_extensions_have_a_bound(tmp_path: Path) -> None:
    ran, agent = await play(tmp_path, good(1), good(2), good(3), maxExtensions=2)
    assert ran.completed()["success"] is True
    assert len(agent.calls()) == 3
    assert ran.completed()["cost"] == pytest.approx(0.75)


async def test_a_failed_extension_fails_the_codon(tmp_path: Path) -> None:
    ran, _ = await play(tmp_path, good(1), [INIT, ["exit", 1]])
    assert ran.completed()["success"] is False
    assert len(ran.of("codon.extended")) == 1


async def test_without_a_session_nothing_is_extended(tmp_path: Path) -> None:
    nameless = [step for step in good(1) if step is not INIT]
    ran, agent = await play(tmp_path, nameless)
    assert ran.completed()["success"] is True
    assert len(agent.calls()) == 1
    assert [event for event in ran.of("info") if event.data.get("code") == "not-extended"]
