"""A codon that continues goes on in the session of the codon before it (reference 3.2)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon
from tests.support.laws import moved_to
from tests.support.runs import Ran, Standin, run_here, stand_in, write_hank

from hankwatch.core.errors import UsageError

CONTINUES = codon("two", continuationMode="continue-previous")


def init(session_id: str) -> list[Any]:
    return ["line", {"type": "system", "subtype": "init", "session_id": session_id}]


def result(**usage: Any) -> list[Any]:
    return ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", **usage}]


def spoke(number: int) -> list[Any]:
    content = [{"type": "text", "text": f"step {number}"}]
    return ["line", {"type": "assistant", "message": {"id": f"m{number}", "content": content}}]


GOOD = [init("s-1"), result(), ["until_eof"]]


async def play(tmp_path: Path, *calls: list[Any], codons: tuple[dict[str, Any], ...]) -> tuple[Ran, Standin]:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    ran = await run_here(write_hank(tmp_path / "hank", *codons), tmp_path / "run", environ=agent.environ)
    return ran, agent


def resumed(agent: Standin) -> list[str | None]:
    """The session each call resumed."""
    calls = [call["argv"] for call in agent.calls()]
    return [argv[argv.index("--resume") + 1] if "--resume" in argv else None for argv in calls]


async def test_the_session_of_the_codon_before_is_resumed(tmp_path: Path) -> None:
    ran, agent = await play(tmp_path, GOOD, [init("s-2"), result(), ["until_eof"]], codons=(codon(), CONTINUES))
    assert resumed(agent) == [None, "s-1"]
    first, second = ran.of("codon.started")
    assert "previousSessionId" not in first.data
    assert (second.data["sessionId"], second.data["previousSessionId"]) == ("s-2", "s-1")
    assert [e for e in ran.of("info") if e.data["message"] == "Continuing from previous session: s-1"]
    spawned = [e.data["transition"]["data"]["metadata"] for e in ran.events if moved_to(e) == "initializing"]
    assert [data.get("previousSessionId") for data in spawned] == [None, "s-1"]
    snapshot = ran.of("state.snapshot")[-1].data["completedCodons"]
    assert [codon.get("previousSessionId") for codon in snapshot] == ["s-1", None]


async def test_a_session_that_is_named_late_is_known_to_the_next_codon(tmp_path: Path) -> None:
    late = [spoke(1), init("s-late"), result(), ["until_eof"]]
    ran, agent = await play(tmp_path, late, GOOD, codons=(codon(), CONTINUES))
    assert ran.of("codon.started")[0].data["sessionId"] == ""
    assert resumed(agent) == [None, "s-late"]


async def test_a_chain_goes_on_from_the_last_session(tmp_path: Path) -> None:
    third = codon("three", continuationMode="continue-previous")
    _, agent = await play(tmp_path, GOOD, [init("s-2"), result(), ["until_eof"]], codons=(codon(), CONTINUES, third))
    assert resumed(agent) == [None, "s-1", "s-2"]


async def test_what_a_session_has_counted_is_not_counted_again(tmp_path: Path) -> None:
    """Totals that run over the whole session add only their growth (bugs A7)."""

    def total(cost_usd: float, tokens: int) -> list[Any]:
        model = {"inputTokens": tokens, "outputTokens": 0, "costUSD": cost_usd}
        return result(session_id="s-1", total_cost_usd=cost_usd, modelUsage={"claude-haiku-4-5": model})

    calls = [[init("s-1"), total(cost, tokens), ["until_eof"]] for cost, tokens in ((0.25, 10), (0.75, 30))]
    ran, _ = await play(tmp_path, *calls, codons=(codon(), CONTINUES))
    assert [event.data["cost"] for event in ran.of("codon.completed")] == [0.25, 0.5]
    finals = [event.data["inputTokens"] for event in ran.of("token.usage") if event.data.get("isFinal")]
    assert finals == [10, 20]


NO_SESSION: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "none was named": ([result(), ["until_eof"]], {}, "has no id"),
    "the codon failed": ([init("s-1"), ["exit", 1]], {"onFailure": "ignore"}, "is failed"),
}


@pytest.mark.parametrize("case", NO_SESSION)
async def test_without_a_session_the_codon_fails_and_says_why(tmp_path: Path, case: str) -> None:
    score, fields, words = NO_SESSION[case]
    ran, agent = await play(tmp_path, score, codons=(codon(**fields), CONTINUES))
    reason = ran.of("codon.completed")[-1].data["failureReason"]
    assert words in reason["message"]
    assert reason["retriable"] is False
    assert len(agent.calls()) == 1


async def test_the_first_codon_has_no_session_to_continue(tmp_path: Path) -> None:
    ran, agent = await play(tmp_path, GOOD, codons=(CONTINUES,))
    assert "no codon ran before it" in ran.completed()["failureReason"]["message"]
    assert agent.calls() == []


async def test_a_program_that_cannot_resume_is_refused_before_the_run(tmp_path: Path) -> None:
    hank = write_hank(tmp_path / "hank", codon(agent="exec:true"), {**CONTINUES, "agent": "recorded:a.jsonl"})
    (tmp_path / "hank" / "a.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="cannot"):
        await run_here(hank, tmp_path / "run")
    assert not (tmp_path / "run").exists()
