"""What ``try --where`` says agrees with what matches: one evaluation, told twice."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_matching import (
    CONDITION,
    DATA,
    DENSE_HISTORIES,
    DENSE_SEQUENCES,
    EVENT_TRIGGERS,
    OPERANDS,
    PATHS,
    SEQUENCE_TRIGGERS,
    SPARSE_HISTORIES,
    TRIGGER,
)
from tests.support.oracles import holds

from hankwatch.events.envelope import Event
from hankwatch.matching.conditions import compile_conditions
from hankwatch.matching.near_misses import NearMisses
from hankwatch.matching.triggers import TriggerIndex


@settings(max_examples=200)
@given(st.lists(st.tuples(PATHS, OPERANDS), max_size=4), DATA)
def test_exactly_the_conditions_that_do_not_hold_are_named(parts: list[Any], data: dict[str, Any]) -> None:
    conditions = [
        CONDITION.validate_python({"path": path, "operator": operator, "value": value})
        for path, (operator, value) in parts
    ]
    compiled = compile_conditions(conditions)
    unmet = [one.place for one in compiled.unmet(data)]
    assert unmet == [index for index, one in enumerate(conditions) if not holds(one, data)]
    assert compiled.hold(data) is (not unmet)


def agree(trigger: dict[str, Any], events: list[Event]) -> NearMisses:
    """Feed both; the near misses, for more to be said of them."""
    model = TRIGGER.validate_python(trigger)
    index: TriggerIndex[str] = TriggerIndex(lambda key, reason: None)
    index.add("s", model)
    misses = NearMisses(model)
    assert [misses.feed(event) for event in events] == [bool(index.route(event)) for event in events]
    return misses


@settings(max_examples=300)
@given(EVENT_TRIGGERS | SEQUENCE_TRIGGERS, SPARSE_HISTORIES)
def test_all_conditions_hold_exactly_when_it_matches(trigger: dict[str, Any], events: list[Event]) -> None:
    misses = agree(trigger, events)
    for step in misses.steps:
        assert step.asked == sum(seen.asked for seen in step.by_type.values()) + step.others.total()
        for seen in step.by_type.values():
            missed = seen.asked - seen.fitted
            counts = [(one.count, one.alone, one.found.total() + one.other) for one in seen.conditions]
            assert all(alone <= count == told <= missed for count, alone, told in counts)
            assert sum(alone for _, alone, _ in counts) <= missed <= sum(count for count, _, _ in counts)
    if trigger["type"] == "event":
        (only,) = misses.steps
        assert only.fitted == misses.matched


@settings(max_examples=300)
@given(DENSE_SEQUENCES, DENSE_HISTORIES)
def test_a_sequence_is_followed_as_matching_follows_it(trigger: dict[str, Any], events: list[Event]) -> None:
    misses = agree(trigger, events)
    assert misses.pending < len(misses.steps)
    assert misses.steps[-1].fitted == misses.matched + misses.late[len(misses.steps)]
