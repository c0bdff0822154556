"""Budgets end agents, not runs: what was reached is told, and the codon completes or fails as it says (reference 3.7)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, hank, loop
from tests.support.runs import Ran, run_here, stand_in, write_hank

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
GOOD = [INIT, ["line", RESULT], ["until_eof"]]


def spoke(number: int, output_tokens: int = 10) -> list[Any]:
    usage = {"input_tokens": 100, "output_tokens": output_tokens}
    content = [{"type": "text", "text": f"part {number}"}]
    return ["line", {"type": "assistant", "message": {"id": f"m{number}", "content": content, "usage": usage}}]


TALKS = [INIT, *(spoke(number) for number in range(5)), ["hang"]]


async def play(
    tmp_path: Path, *calls: list[Any], items: tuple[dict[str, Any], ...], config: str = "", **fields: Any
) -> Ran:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    files = {"hank.json": hank(*items, **fields), "hankwatch.toml": config}
    return await run_here(write_hank(tmp_path / "hank", files=files), tmp_path / "run", environ=agent.environ)


def rows(ran: Ran) -> list[tuple[str, str]]:
    (summary,) = ran.of("budget.summary")
    assert ran.events[-2].id == summary.id, "the table stands before the end of the run"
    return [(row["codonId"], row["status"]) for row in summary.data["rows"]]


@pytest.mark.parametrize("ending", ["complete", "fail"])
async def test_a_reached_limit_ends_the_agent_as_its_budget_says(tmp_path: Path, ending: str) -> None:
    limited = codon(budget={"maxOutputTokens": 30, "onExceeded": ending})
    ran = await play(tmp_path, TALKS, GOOD, items=(limited, codon("two")))
    first = ran.of("codon.completed")[0].data
    assert first["budgetExceeded"] == {"currency": "outputTokens", "limit": 30, "used": 30}
    assert first["success"] is (ending == "complete")
    assert ran.result is not None
    assert ran.result.success is (ending == "complete")
    assert [e.data["details"]["used"] for e in ran.of("info") if e.data.get("code") == "budget-exceeded"] == [30]
    assert rows(ran)[0] == ("one", "exceeded")
    assert len(ran.of("codon.completed")) == (2 if ending == "complete" else 1)


async def test_time_ends_an_agent_that_says_nothing(tmp_path: Path) -> None:
    ran = await play(tmp_path, [INIT, ["hang"]], items=(codon(budget={"maxTimeSeconds": 0.3}),))
    assert ran.completed()["budgetExceeded"]["currency"] == "duration"
    assert ran.completed()["success"] is True


async def test_time_ends_an_agent_that_never_began_to_speak_once(tmp_path: Path) -> None:
    items = (codon(budget={"maxTimeSeconds": 0.3}), codon("two"))
    ran = await play(tmp_path, [["hang"]], GOOD, items=items)
    assert [(e.data["codonId"], e.data["success"]) for e in ran.of("codon.completed")] == [("one", True), ("two", True)]
    assert [e.data["codonId"] for e in ran.of("codon.started")] == ["one", "two"]


async def test_a_program_that_states_its_cost_at_the_end_is_ended_in_time(tmp_path: Path) -> None:
    ran = await play(
        tmp_path, [INIT, spoke(1), spoke(2, 2_000_000), ["hang"]], items=(codon(budget={"maxDollars": 1}),)
    )
    exceeded = ran.completed()["budgetExceeded"]
    assert (exceeded["currency"], exceeded["limit"]) == ("cost", 1)
    assert exceeded["used"] == pytest.approx(10, rel=0.01)


async def test_what_was_estimated_is_gone_from_the_pool(tmp_path: Path) -> None:
    items = (codon("a", budget={"maxDollars": 1}), codon("b"))
    talks = [INIT, spoke(1, 2_000_000), ["hang"]]
    ran = await play(tmp_path, talks, GOOD, items=items, overrides={"budget": {"maxDollars": 5}})
    assert rows(ran) == [("a", "exceeded"), ("b", "exceeded")]


async def test_the_largest_call_is_the_context(tmp_path: Path) -> None:
    ran = await play(
        tmp_path, [INIT, spoke(1), spoke(2, 200), ["hang"]], items=(codon(budget={"maxContextTokens": 300}),)
    )
    assert ran.completed()["budgetExceeded"] == {"currency": "contextTokens", "limit": 300, "used": 300}


async def test_a_failure_on_the_budget_is_not_tried_again(tmp_path: Path) -> None:
    limited = codon(budget={"maxOutputTokens": 30, "onExceeded": "fail"}, onFailure="retry")
    ran = await play(tmp_path, TALKS, items=(limited,))
    assert ran.completed()["failureReason"]["retriable"] is False


async def test_a_pool_that_is_used_up_leaves_later_codons_undone(tmp_path: Path) -> None:
    ran = await play(
        tmp_path, GOOD, items=(codon("a"), codon("b"), codon("c")), overrides={"budget": {"maxDollars": 0.5}}
    )
    assert rows(ran) == [("a", "completed"), ("b", "exceeded"), ("c", "exceeded")]
    assert [event.data["success"] for event in ran.of("codon.completed")] == [True, True, False]
    assert ran.result is not None
    assert [codon.status for codon in ran.result.record.codons] == ["completed", "completed", "skipped"]
    assert ran.result.success
    (summary,) = ran.of("budget.summary")
    assert summary.data["totals"]["actualDollars"] == 0.5


async def test_a_loop_ends_when_its_budget_is_reached(tmp_path: Path) -> None:
    again = loop(codon("b"), codon("c"), terminateOn={"type": "iterationLimit", "limit": 9}, budget={"maxDollars": 0.7})
    ran = await play(tmp_path, GOOD, items=(again, codon("z")))
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["b#0", "c#0", "b#1", "z"]
    last = ran.of("loop.iteration.completed")[-1].data
    assert last["isFinal"] is True
    assert "terminationReason" not in last


async def test_every_attempt_counts_against_the_pool(tmp_path: Path) -> None:
    bad = [INIT, ["line", {**RESULT, "is_error": True, "result": "API Error: 529 overloaded"}], ["until_eof"]]
    retried = codon("a", onFailure="retry", retryConfig={"delayMs": 0, "maxAttempts": 5})
    ran = await play(tmp_path, bad, items=(retried,), overrides={"budget": {"maxDollars": 0.5, "onExceeded": "fail"}})
    assert len(ran.of("codon.completed")) == 2
    assert ran.of("codon.completed")[-1].data["budgetExceeded"]["limit"] == 0.25


async def test_the_ceiling_of_the_settings_holds_too(tmp_path: Path) -> None:
    config = "[run.budget]\nmax_dollars = 0.25\n"
    ran = await play(tmp_path, GOOD, items=(codon("a"), codon("b")), config=config)
    assert rows(ran) == [("a", "exceeded"), ("b", "exceeded")]


async def test_without_a_budget_there_is_no_table(tmp_path: Path) -> None:
    ran = await play(tmp_path, GOOD, items=(codon(),))
    assert ran.of("budget.summary") == []
