"""The state of a run is a fold of its transitions."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hankwatch.agents.signals import Tokens
from hankwatch.runner.state import FINAL, RunState, Transition, reduce, total_cost

STAMP = "2026-11-30T12:00:00.000Z"
STATUSES = (
    "preparing",
    "starting",
    "initializing",
    "running",
    "completing-sentinels",
    "completed",
    "failed",
    "skipped",
)


Steps = Sequence[tuple[str, Mapping[str, object]]]
BEGIN: Steps = [("RunStarted", {}), ("CodonStarted", {"codonId": "c"})]


def after(*steps: tuple[str, Mapping[str, object]]) -> RunState:
    state = RunState()
    for kind, data in steps:
        state = reduce(state, Transition(kind, {"runId": "r", **data}, STAMP))
    return state


def moved(*statuses: str) -> RunState:
    moves: Steps = [("CodonTransitioned", {"codonId": "c", "to": status}) for status in statuses]
    return after(*BEGIN, *moves)


def test_a_codon_begins_preparing_in_its_run() -> None:
    run = moved().current
    assert run is not None
    assert [(c.codon_id, c.attempt, c.status) for c in run.codons] == [("c", 1, "preparing")]


def test_a_second_start_of_a_codon_is_a_second_attempt() -> None:
    run = after(("RunStarted", {}), ("CodonStarted", {"codonId": "c"}), ("CodonStarted", {"codonId": "c"})).current
    assert run is not None
    assert [c.attempt for c in run.codons] == [1, 2]


def test_the_normal_path_is_open() -> None:
    run = moved("starting", "initializing", "running", "completing-sentinels", "completed").current
    assert run is not None
    assert run.codons[0].status == "completed"
    assert run.codons[0].ended_at == STAMP


@given(st.lists(st.sampled_from(STATUSES), max_size=12))
def test_a_final_codon_never_moves_again(statuses: list[str]) -> None:
    run = moved(*statuses).current
    assert run is not None
    reached = [_status(statuses[: length + 1]) for length in range(len(statuses))]
    first_final = next((status for status in reached if status in FINAL), None)
    if first_final is not None:
        assert run.codons[0].status == first_final


def _status(statuses: list[str]) -> str:
    run = moved(*statuses).current
    assert run is not None
    return run.codons[0].status


def test_costs_add_up_over_increments_until_one_is_unknown() -> None:
    increment = {"codonId": "c", "tokensDelta": {"inputTokens": 2, "outputTokens": 3}}
    costs: Steps = [("CostsIncremented", {**increment, "costDelta": 0.5})] * 2
    known = after(*BEGIN, *costs)
    assert known.resulting_state()["totalCost"] == 1.0
    assert known.runs[0].codons[0].tokens == Tokens(input=4, output=6)
    unknown = reduce(known, Transition("CostsIncremented", {"runId": "r", **increment, "costDelta": None}, STAMP))
    assert unknown.resulting_state()["totalCost"] is None


def test_the_end_of_a_run_leaves_no_current_run() -> None:
    assert after(("RunStarted", {})).resulting_state()["currentRunId"] == "r"
    assert after(("RunStarted", {}), ("RunFailed", {})).resulting_state()["currentRunId"] is None


@pytest.mark.parametrize("kind", ["Unknown", "CheckpointCreated", "CodonTransitioned"])
def test_what_does_not_apply_changes_nothing(kind: str) -> None:
    state = after(("RunStarted", {}))
    assert reduce(state, Transition(kind, {"runId": "other", "codonId": "x"}, STAMP)) == state


def test_no_costs_cost_nothing() -> None:
    assert total_cost([]) == 0.0


@pytest.mark.parametrize("cost", [1e308, -1, "0.5", True, [1]])
def test_a_cost_that_no_run_can_have_is_unknown_however_often_it_stands_in_a_journal(cost: object) -> None:
    spent = ("CostsIncremented", {"codonId": "c", "costDelta": cost, "tokensDelta": {"inputTokens": 1e300}})
    codon = after(*BEGIN, spent, spent, ("CodonFinalCostSet", {"codonId": "c", "finalCost": cost})).runs[0].codons[0]
    assert (codon.cost_usd, codon.known_cost_usd, codon.tokens) == (None, 0.0, Tokens())


def test_costs_too_large_for_a_sum_have_none() -> None:
    assert total_cost([1e308, 1e308]) is None
