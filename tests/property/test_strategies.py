"""No match is lost, doubled, reordered or split by any strategy, under any interleaving with timers and drains."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.support.oracles import Fired, fires, matches

from hankwatch.events.envelope import Event
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger, Trigger, TriggerIndex
from hankwatch.sentinels import strategies
from hankwatch.sentinels.strategies import Batch, Execution, make_strategy
from hankwatch.testing import make_event

EXECUTION: TypeAdapter[Execution] = TypeAdapter(Execution)
TRIGGER: TypeAdapter[EventTrigger | SequenceTrigger] = TypeAdapter(Trigger)
MAX_EVENTS = 6
TICKS = st.integers(1, 12)

EXECUTIONS = st.one_of(
    st.just({"strategy": "immediate"}),
    st.fixed_dictionaries(
        {"strategy": st.just("debounce"), "milliseconds": TICKS},
        optional={"maxWaitMilliseconds": st.none() | st.integers(1, 20)},
    ),
    st.fixed_dictionaries({"strategy": st.just("count"), "threshold": st.integers(1, 5)}),
    st.fixed_dictionaries({"strategy": st.just("timeWindow"), "milliseconds": TICKS}),
)
OPERATIONS = st.lists(
    st.tuples(st.integers(0, 9), st.one_of(st.integers(1, 4), st.integers(1, 8), st.sampled_from(["drain", "tick"]))),
    max_size=25,
)


@pytest.fixture(autouse=True, scope="module")
def small_batches() -> Any:
    """Batches of six events, so that they are full within an example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "MAX_BATCH_EVENTS", MAX_EVENTS)
        yield


def shape(batches: Sequence[Batch]) -> list[Fired]:
    return [(tuple(event.id for event in batch.events), batch.cause.value, batch.at_ms) for batch in batches]


def some_events(count: int, at: int) -> list[Event]:
    return [make_event("info", at, message="x") for _ in range(count)]


@settings(max_examples=200)
@given(EXECUTIONS, OPERATIONS)
def test_a_strategy_fires_what_watching_each_millisecond_would(config: dict[str, Any], plan: list[Any]) -> None:
    execution = EXECUTION.validate_python(config)
    machine = make_strategy(execution)
    batches: list[Batch] = []
    operations: list[tuple[int, list[Event] | None]] = []
    at = 1_000
    for gap, operation in [*plan, (0, "drain")]:
        at += gap
        # A timer may have been served in time or not at all: the result is the same.
        if operation == "tick":
            batches += machine.on_due(at)
        elif operation == "drain":
            operations.append((at, None))
            batches += machine.drain(at)
        else:
            operations.append((at, some_events(operation, at)))
            batches += machine.on_match(operations[-1][1] or [], at)
    assert shape(batches) == fires(execution, operations, max_events=MAX_EVENTS)


@settings(max_examples=150)
@given(EXECUTIONS, OPERATIONS)
def test_every_match_is_in_exactly_one_batch_whole_and_in_order(config: dict[str, Any], plan: list[Any]) -> None:
    machine = make_strategy(EXECUTION.validate_python(config))
    batches: list[Batch] = []
    whole: list[list[str]] = []
    at = 0
    for gap, operation in plan:
        at += gap
        while (due := machine.next_due_ms()) is not None and due <= at:
            batches += machine.on_due(due)
        if operation == "drain":
            batches += machine.drain(at)
        elif operation != "tick":
            match = some_events(operation, at)
            whole.append([event.id for event in match])
            batches += machine.on_match(match, at)
    batches += machine.drain(at)
    assert machine.next_due_ms() is None
    ids = [event.id for batch in batches for event in batch.events]
    assert ids == [one for match in whole for one in match]
    ends = {match[-1] for match in whole}
    assert all(batch.events[-1].id in ends for batch in batches)
    assert [batch.at_ms for batch in batches] == sorted(batch.at_ms for batch in batches)
    sizes = {match[-1]: len(match) for match in whole}
    assert all(len(b.events) <= MAX_EVENTS or len(b.events) == sizes[b.events[-1].id] for b in batches)


@settings(max_examples=150)
@given(
    EXECUTIONS,
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from("aab")), max_size=20),
    st.sampled_from(["aa", "ab", "aab"]),
    st.fixed_dictionaries({"consecutive": st.booleans()}, optional={"withinMilliseconds": st.integers(1, 15)}),
)
def test_sequences_reach_every_strategy_whole(
    config: dict[str, Any], stream: list[tuple[int, str]], pattern: str, options: dict[str, Any]
) -> None:
    execution = EXECUTION.validate_python(config)
    steps = [
        {"type": "info", "conditions": [{"path": "message", "operator": "equals", "value": letter}]}
        for letter in pattern
    ]
    trigger = TRIGGER.validate_python(
        {"type": "sequence", "interestFilter": {"on": ["*"]}, "pattern": steps, "options": options}
    )
    index: TriggerIndex[str] = TriggerIndex(lambda key, reason: None)
    index.add("s", trigger)
    machine = make_strategy(execution)
    events: list[Event] = []
    batches: list[Batch] = []
    at = 0
    for gap, letter in stream:
        at += gap
        events.append(make_event("info", at, message=letter))
        batches += machine.on_due(at)
        for match in index.route(events[-1]):
            batches += machine.on_match(match.events, at)
    batches += machine.drain(at)
    by_id = {event.id: event for event in events}
    found = [[by_id[one] for one in ids] for ids in matches(trigger, events)]
    operations: list[tuple[int, list[Event] | None]] = [(match[-1].at_ms, match) for match in found]
    assert shape(batches) == fires(execution, [*operations, (at, None)], max_events=MAX_EVENTS)
