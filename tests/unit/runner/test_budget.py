"""What a codon may still use is a pure function of the hank, the run's ceilings and what was used."""

import json
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.hanks import codon, hank, loop

from hankwatch.events.run import TokenUsage
from hankwatch.hank.model import Hank, Loop
from hankwatch.runner.budget import Allowance, Limit, Meter, allowance, has_limits, portions, summary
from hankwatch.runner.plan import LoopPlace, StartCodon
from hankwatch.runner.pricing import estimate_usd
from hankwatch.runner.settings import RunBudget
from hankwatch.runner.state import CodonRecord, RunState, Transition, reduce

ABC = (codon("a"), codon("b"), codon("c"))


def a_hank(*items: dict[str, Any], **budget: Any) -> Hank:
    return Hank.model_validate_json(json.dumps(hank(*items, overrides={"budget": budget} if budget else {})))


def spent(codon_id: str, dollars: float = 0.0, seconds: float = 0.0, loop_id: str | None = None) -> CodonRecord:
    return CodonRecord(
        codon_id,
        1,
        "completed",
        "",
        base_codon_id=codon_id.partition("#")[0],
        cost_usd=dollars,
        stated_cost_usd=dollars,
        agent_began_at="2026-01-01T00:00:00.000Z",
        agent_ended_at=f"2026-01-01T00:00:{seconds:06.3f}Z",
        loop={"loopId": loop_id, "iteration": 0, "codonIndexInLoop": 0} if loop_id else None,
    )


def left(hank: Hank, codon_id: str, *used: CodonRecord, **ceiling: Any) -> dict[str, float]:
    """What a codon may use, by name; the hank's own ceiling is among the run's, as the settings have it."""
    budget = hank.overrides.budget if hank.overrides else None
    run = RunBudget(
        max_dollars=ceiling.get("dollars", budget.max_dollars if budget else None),
        max_time_seconds=ceiling.get("seconds", budget.max_time_seconds if budget else None),
    )
    return allowance(hank, run, step(hank, codon_id), used).as_json()


def step(hank: Hank, codon_id: str) -> StartCodon:
    for item in hank.hank:
        if not isinstance(item, Loop):
            if item.id == codon_id:
                return StartCodon(item, codon_id)
            continue
        for index, inner in enumerate(item.codons):
            if inner.id == codon_id:
                return StartCodon(inner, f"{codon_id}#0", LoopPlace(item, 0, index))
    raise LookupError(codon_id)


def test_without_budgets_there_are_no_limits() -> None:
    assert left(a_hank(*ABC), "a") == {}
    assert not has_limits(a_hank(*ABC), RunBudget())


def test_a_codon_has_four_limits_of_its_own() -> None:
    own = {"maxDollars": 1, "maxTimeSeconds": 2, "maxOutputTokens": 3, "maxContextTokens": 4}
    assert left(a_hank(codon("a", budget=own)), "a") == own


def test_a_shared_pool_is_open_to_whoever_runs() -> None:
    assert left(a_hank(*ABC, maxDollars=10), "b", spent("a", 4)) == {"maxDollars": 6}


def test_a_share_is_a_part_of_the_whole_and_never_more_than_is_left() -> None:
    pool = a_hank(*ABC, maxDollars=10, allocation="proportional", shares={"a": 0.5})
    assert left(pool, "a") == {"maxDollars": 5}
    assert left(pool, "b", spent("a", 1)) == {"maxDollars": 2.5}
    assert left(pool, "c", spent("a", 9), spent("b", 0.5)) == {"maxDollars": 0.5}


def test_with_strict_shares_what_others_left_is_gone() -> None:
    pool = a_hank(*ABC, maxDollars=10, allocation="proportional-strict", shares={"a": 0.5, "b": 0.3, "c": 0.2})
    assert left(pool, "c", spent("a", 6), spent("b", 1)) == {"maxDollars": pytest.approx(1)}
    assert left(pool, "c", spent("a", 1), spent("b", 1)) == {"maxDollars": pytest.approx(2)}


def test_a_share_is_used_up_by_all_attempts() -> None:
    pool = a_hank(*ABC, maxDollars=9, allocation="proportional")
    assert left(pool, "a", spent("a", 1), spent("a", 1)) == {"maxDollars": 1}


def test_the_lowest_limit_stands() -> None:
    pool = a_hank(codon("a", budget={"maxDollars": 3}), codon("b"), maxDollars=10)
    assert left(pool, "a") == {"maxDollars": 3}
    assert left(pool, "a", spent("b", 8)) == {"maxDollars": 2}
    assert left(pool, "a", dollars=1) == {"maxDollars": 1}


def test_a_loop_counts_all_its_iterations_and_its_own_share_of_the_hank() -> None:
    inner = loop(codon("x"), codon("y", budget={"maxDollars": 9}), budget={"maxDollars": 6})
    pool = a_hank(codon("a"), inner, maxDollars=10, allocation="proportional")
    iterations = (spent("x#0", 1, loop_id="again"), spent("y#0", 1, loop_id="again"))
    assert left(pool, "y", *iterations) == {"maxDollars": 3}
    assert left(pool, "y", *iterations, spent("a", 5)) == {"maxDollars": 3}
    assert left(pool, "y", *iterations, spent("a", 7)) == {"maxDollars": 1}


def test_time_is_shared_by_all() -> None:
    pool = a_hank(*ABC, maxTimeSeconds=30, maxDollars=1, allocation="proportional")
    assert left(pool, "b", spent("a", seconds=12.5))["maxTimeSeconds"] == 17.5


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.integers(0, 3))
def test_portions_never_add_up_to_more_than_the_whole(raw: list[float], shared: int) -> None:
    shares = {name: value / 3 for name, value in zip("abc"[:shared], raw, strict=False)}
    pool = a_hank(*ABC, maxDollars=1, allocation="proportional", **({"shares": shares} if shares else {}))
    assert pool.overrides is not None
    assert pool.overrides.budget is not None
    parts = portions(pool.overrides.budget, ["a", "b", "c"])
    assert sum(parts.values()) <= 1 + 1e-9


def usage(**fields: Any) -> TokenUsage:
    numbers = {"input_tokens": 0, "output_tokens": 0, "cache_creation_tokens": 0, "cache_read_tokens": 0}
    return TokenUsage(codon_id="a", **{**numbers, "total_cost": None, **fields})


def metered(currency: Any, limit: float, *usages: TokenUsage) -> list[float | None]:
    meter, costs = Meter(Allowance((Limit(currency, limit, "fail"),))), accumulate(u.total_cost or 0 for u in usages)
    found = [meter.add(one, cost_usd) for one, cost_usd in zip(usages, costs, strict=True)]
    return [exceeded.what.used if exceeded else None for exceeded in found]


def test_a_limit_is_reached_at_exactly_itself() -> None:
    assert metered("cost", 1.0, usage(total_cost=0.5), usage(total_cost=0.5)) == [None, 1.0]


def test_output_adds_up_and_context_is_the_largest_call() -> None:
    calls = (usage(input_tokens=50, output_tokens=6), usage(input_tokens=10, output_tokens=6))
    assert metered("outputTokens", 10, *calls) == [None, 12]
    assert metered("contextTokens", 57, *calls) == [None, None]
    cached = usage(input_tokens=1, output_tokens=1, cache_read_tokens=1000)
    assert metered("contextTokens", 57, cached) == [None]


def test_what_is_stated_late_replaces_what_was_estimated() -> None:
    state = RunState()
    for kind, data in (
        ("RunStarted", {}),
        ("CodonStarted", {"codonId": "a"}),
        ("CostsIncremented", {"codonId": "a", "costDelta": None, "costEstimate": 0.5}),
        ("CostsIncremented", {"codonId": "a", "costDelta": None, "costEstimate": 0.25}),
    ):
        state = reduce(state, Transition(kind, {"runId": "r", **data}, ""))
    assert state.attempts[0].known_cost_usd == 0.75
    stated = {"runId": "r", "codonId": "a", "costDelta": 0.6}
    state = reduce(state, Transition("CostsIncremented", stated, ""))
    assert state.attempts[0].known_cost_usd == 0.6


def test_an_estimate_is_that_of_the_registry() -> None:
    million = usage(input_tokens=1_000_000, model_id="claude-haiku-4-5")
    known = estimate_usd(million, None)
    assert known is not None
    assert known > 0
    assert estimate_usd(usage(input_tokens=1_000_000), "anthropic/claude-haiku-4-5") == known
    assert estimate_usd(usage(output_tokens=1_000_000), "anthropic/claude-haiku-4-5") == pytest.approx(5 * known)
    assert estimate_usd(usage(input_tokens=1), "nobody/knows") is None
    assert estimate_usd(usage(input_tokens=1), None) is None


def test_a_name_that_the_registry_does_not_know_hides_no_price_of_the_hanks_model() -> None:
    aliased = usage(input_tokens=1_000_000, model_id="the-gateways-own-name")
    assert estimate_usd(aliased, "anthropic/claude-haiku-4-5") == estimate_usd(
        usage(input_tokens=1_000_000), "anthropic/claude-haiku-4-5"
    )


def test_a_limit_of_nothing_is_reached_before_the_agent() -> None:
    assert Allowance((Limit("cost", 0.0, "fail"),)).spent is not None
    assert Allowance((Limit("cost", 0.1, "fail"),)).spent is None


def test_the_summary_has_one_row_for_all_attempts_of_a_codon() -> None:
    records = [spent("a", 1, 1), spent("a", 2, 2), spent("b#0", 4, loop_id="again")]
    told = summary(a_hank(*ABC, maxDollars=10), RunBudget(max_dollars=10), records)
    assert [(row.codon_id, row.actual.dollars, row.actual.time_seconds) for row in told.rows] == [
        ("a", 3, 3),
        ("b#0", 4, 0),
    ]
    assert told.rows[1].loop_context is not None
    assert (told.totals.budget_dollars, told.totals.actual_dollars) == (10, 7)
