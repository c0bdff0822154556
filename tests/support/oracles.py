"""Matching and strategies the naive way: whole histories and single milliseconds, nothing remembered cleverly."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from hankwatch.events.catalogue import OPEN_TYPES
from hankwatch.events.envelope import Event
from hankwatch.matching.conditions import Condition
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger
from hankwatch.sentinels.strategies import (
    CountExecution,
    DebounceExecution,
    Execution,
    ImmediateExecution,
    TimeWindowExecution,
)

ABSENT: Any = object()
Fired = tuple[tuple[str, ...], str, int]
"""Event ids, cause, instant."""


def same(left: Any, right: Any) -> bool:
    """JSON's equality of scalars."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and isinstance(left, str | None) and left == right


def value_at(data: Any, path: str) -> Any:
    for key in path.split("."):
        if isinstance(data, dict):
            data = data.get(key, ABSENT)
        elif isinstance(data, list) and key in {str(index) for index in range(len(data))}:
            data = data[int(key)]
        elif isinstance(data, list | str) and key == "length":
            data = sum(2 if isinstance(data, str) and ord(item) > 0xFFFF else 1 for item in data)
        else:
            return ABSENT
    return data


def holds(condition: Condition, data: Any) -> bool:
    value, wanted = value_at(data, condition.path), _operand(condition)
    if condition.operator == "exists":
        return (value is not ABSENT) is wanted
    if value is ABSENT:
        return False
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match condition.operator:
        case "equals":
            return same(value, wanted)
        case "notEquals":
            return not same(value, wanted)
        case "in":
            return any(same(value, one) for one in wanted)
        case "notIn":
            return not any(same(value, one) for one in wanted)
        case "contains":
            return _contains(value, wanted)
        case "notContains":
            return not _contains(value, wanted)
        case "greaterThan":
            return number and value > wanted
        case "greaterThanOrEqual":
            return number and value >= wanted
        case "lessThan":
            return number and value < wanted
        case "lessThanOrEqual":
            return number and value <= wanted
        case _:
            raise AssertionError(condition.operator)


def _operand(condition: Condition) -> Any:
    return condition.value


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return value.find(wanted) >= 0
    return isinstance(value, list) and any(same(member, wanted) for member in value)


def matches(trigger: EventTrigger | SequenceTrigger, events: Sequence[Event]) -> list[list[str]]:
    """The ids of every match, in the order of the events that complete them."""
    if isinstance(trigger, EventTrigger):
        return [[e.id] for e in events if _covered(trigger.on, e) and all(holds(c, e.data) for c in trigger.conditions)]
    considered = [event for event in events if _covered(trigger.interest_filter.on, event)]
    groups: dict[str, list[Event]] = {}
    for event in considered:
        value = value_at(event.data, trigger.options.correlate_by) if trigger.options.correlate_by else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = float(value)
        if value is None or isinstance(value, str | int | float):
            groups.setdefault(repr(value), []).append(event)
    found = [match for group in groups.values() for match in _sequence_matches(trigger, group)]
    place = {event.id: index for index, event in enumerate(events)}
    return sorted(found, key=lambda ids: place[ids[-1]])


def _covered(on: Iterable[str], event: Event) -> bool:
    return event.type in on or ("*" in on and event.type in OPEN_TYPES)


def _fits(trigger: SequenceTrigger, chosen: Sequence[Event]) -> bool:
    within = trigger.options.within_milliseconds
    return (within is None or chosen[-1].at_ms - chosen[0].at_ms <= within) and all(
        step.type in {"*", event.type} and all(holds(c, event.data) for c in step.conditions)
        for step, event in zip(trigger.pattern, chosen, strict=True)
    )


def _sequence_matches(trigger: SequenceTrigger, events: Sequence[Event]) -> list[list[str]]:
    found, start, size = [], 0, len(trigger.pattern)
    for end in range(1, len(events) + 1):
        fresh = range(start, end)
        if len(fresh) < size:
            continue
        last = end - 1
        if trigger.options.consecutive:
            choices = [tuple(fresh[-size:])]
        else:
            choices = [(*before, last) for before in combinations(fresh[:-1], size - 1)]
        fitting = [choice for choice in choices if _fits(trigger, [events[i] for i in choice])]
        if fitting:
            if trigger.options.within_milliseconds is not None:
                latest = max(choice[0] for choice in fitting)
                fitting = [choice for choice in fitting if choice[0] == latest]
            found.append([events[i].id for i in min(fitting)])
            start = end
    return found


def fires(
    execution: Execution, operations: Sequence[tuple[int, Sequence[Event] | None]], *, max_events: int
) -> list[Fired]:
    """What a strategy fires for matches and drains (None) at instants, by looking at each millisecond."""
    fired: list[Fired] = []
    buffer: list[tuple[int, Sequence[Event]]] = []
    grid: int | None = None

    def fire(cause: str, at: int) -> None:
        if buffer:
            fired.append((tuple(event.id for _, match in buffer for event in match), cause, at))
            buffer.clear()

    now = operations[0][0] if operations else 0
    for at, match in operations:
        for tick in range(now, at + 1):
            if buffer and isinstance(execution, DebounceExecution):
                limit = execution.max_wait_ms
                if tick - buffer[-1][0] >= execution.milliseconds:
                    fire("quiet", tick)
                elif limit is not None and tick - buffer[0][0] >= limit:
                    fire("max_wait", tick)
            if buffer and isinstance(execution, TimeWindowExecution) and grid is not None:
                window = execution.milliseconds
                if (tick - grid) // window > (buffer[0][0] - grid) // window:
                    fire("window", tick)
        now = at
        if match is None:
            fire("drain", at)
            continue
        grid = at if grid is None else grid
        if isinstance(execution, ImmediateExecution):
            buffer.append((at, match))
            fire("match", at)
            continue
        if sum(len(earlier) for _, earlier in buffer) + len(match) > max_events:
            fire("full", at)
        buffer.append((at, match))
        if isinstance(execution, CountExecution) and len(buffer) == execution.threshold:
            fire("threshold", at)
    return fired
