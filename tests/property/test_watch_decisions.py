"""Laws of a watch's decisions over any run of checks (spec watches 3 and 8)."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.support.watches import a_watch, at, seen

from hankwatch.watches.decide import decide
from hankwatch.watches.watch import Kind, Observation, Outcome, Signal, Status, Trigger, Watch

CHECKS = st.lists(
    st.builds(seen, st.sampled_from(Outcome), st.integers(0, 2)),
    max_size=40,
)
WATCHES = st.builds(
    a_watch,
    kind=st.sampled_from(Kind),
    trigger=st.sampled_from(Trigger),
    repeat=st.booleans(),
    expires_s=st.one_of(st.none(), st.integers(1, 1_300)),
    stall_after=st.one_of(st.none(), st.integers(1, 5)),
)
FIRES = {Signal.MET, Signal.CHANGED}


def fires_of(watch: Watch, checks: Sequence[Observation]) -> tuple[Watch, list[int]]:
    """The watch at the end, and the numbers of its fires."""
    fires = list[int]()
    for number, check in enumerate(checks, 1):
        if watch.status is Status.ENDED:
            break
        decision = decide(watch, check, at(30 * number))
        fires += [raised.fire for raised in decision.raised if raised.fire is not None]
        assert sum(raised.signal in FIRES for raised in decision.raised) <= 1
        watch = decision.watch
    return watch, fires


@given(WATCHES, CHECKS)
def test_fires_are_numbered_without_gaps_and_counted(watch: Watch, checks: list[Observation]) -> None:
    last, fires = fires_of(watch, checks)

    assert fires == list(range(1, last.fire_count + 1))
    if not watch.repeat:
        assert len(fires) <= 1


@given(WATCHES, CHECKS)
def test_an_active_watch_has_a_next_check_and_an_ended_one_has_none(watch: Watch, checks: list[Observation]) -> None:
    last, _ = fires_of(watch, checks)

    assert (last.next_check_at is None) == (last.status is Status.ENDED)
    assert (last.end_reason is None) == (last.status is Status.ACTIVE)


@given(WATCHES.map(lambda watch: replace(watch, expires_at=None)), CHECKS)
def test_fires_are_those_of_the_settled_checks_alone(watch: Watch, checks: list[Observation]) -> None:
    """However many checks make no claim in between, and wherever (invariant 4)."""
    settled = [check for check in checks if check.outcome is not Outcome.UNAVAILABLE]

    assert fires_of(watch, checks)[1] == fires_of(watch, settled)[1]


@given(WATCHES, CHECKS.map(lambda checks: [one for one in checks if one.outcome is not Outcome.TERMINAL_UNSATISFIED]))
def test_what_makes_no_claim_moves_neither_edge_nor_baseline_nor_streak(
    watch: Watch, checks: list[Observation]
) -> None:
    before, _ = fires_of(watch, checks)
    if before.status is Status.ENDED:
        return
    after = decide(before, seen(Outcome.UNAVAILABLE, 0), at(30 * (len(checks) + 1))).watch

    assert after.memory == replace(
        before.memory, consecutive_errors=after.memory.consecutive_errors, broken=after.memory.broken
    )


@given(CHECKS)
def test_a_repeating_met_watch_fires_as_often_as_its_condition_rises(checks: list[Observation]) -> None:
    expected, up = 0, False
    for check in checks:
        if check.outcome is Outcome.TERMINAL_UNSATISFIED:
            break
        if check.outcome is not Outcome.UNAVAILABLE:
            expected += check.outcome is Outcome.SATISFIED and not up
            up = check.outcome is Outcome.SATISFIED

    assert len(fires_of(a_watch(repeat=True, expires_s=None), checks)[1]) == expected


@given(CHECKS)
def test_a_repeating_change_watch_fires_as_often_as_its_value_moves(checks: list[Observation]) -> None:
    values = list[str]()
    for check in checks:
        if check.outcome is Outcome.TERMINAL_UNSATISFIED:
            break
        if check.outcome is not Outcome.UNAVAILABLE:
            values.append(check.digest)
    moves = sum(one != other for one, other in itertools.pairwise(values))

    assert len(fires_of(a_watch(trigger=Trigger.CHANGE, repeat=True, expires_s=None), checks)[1]) == moves
