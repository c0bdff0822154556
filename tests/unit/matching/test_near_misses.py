"""What is kept of a near miss, and how little of it (spec cli, ``try --where``)."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from hankwatch.matching.near_misses import MAX_EXAMPLES, MAX_VALUES, NOTHING, NearMisses, shown_value
from hankwatch.matching.triggers import MAX_OVERRUNS, EventTrigger, SequenceTrigger, Trigger
from hankwatch.testing import make_event

TRIGGER: TypeAdapter[EventTrigger | SequenceTrigger] = TypeAdapter(Trigger)


def on_results(*conditions: tuple[str, str, Any]) -> NearMisses:
    written = [{"path": path, "operator": operator, "value": value} for path, operator, value in conditions]
    return NearMisses(TRIGGER.validate_python({"type": "event", "on": ["tool.result"], "conditions": written}))


def sequence(*steps: str, on: list[str] | None = None, **options: Any) -> NearMisses:
    pattern = [{"type": "info", "conditions": [{"path": "v", "operator": "equals", "value": step}]} for step in steps]
    trigger = {"type": "sequence", "interestFilter": {"on": on or ["info"]}, "pattern": pattern, "options": options}
    return NearMisses(TRIGGER.validate_python(trigger))


def info(at_ms: int, v: str, **data: Any) -> Any:
    return make_event("info", at_ms, v=v, **data)


def test_each_condition_says_what_it_found_and_when_it_alone_was_in_the_way() -> None:
    misses = on_results(("isError", "equals", True), ("toolName", "equals", "Bash"))
    for tool, error in (("Bash", False), ("Read", False), ("Read", True), ("Bash", True)):
        misses.feed(make_event("tool.result", 0, toolName=tool, isError=error))
    seen = misses.steps[0].by_type["tool.result"]
    assert (seen.asked, seen.fitted, misses.matched) == (4, 1, 1)
    is_error, tool_name = seen.conditions
    assert (is_error.count, is_error.alone, is_error.found) == (2, 1, {"false": 2})
    assert (tool_name.count, tool_name.alone, tool_name.found) == (2, 1, {'"Read"': 2})


def test_examples_and_values_are_bounded_and_the_rest_is_counted() -> None:
    misses = on_results(("toolName", "equals", "x"))
    for number in range(200):
        misses.feed(make_event("tool.result", 0, toolName=f"tool {number}"))
    (one,) = misses.steps[0].by_type["tool.result"].conditions
    assert (len(one.examples), len(one.found), one.other) == (MAX_EXAMPLES, MAX_VALUES, 200 - MAX_VALUES)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        ("a\nb", '"a\\nb"'),
        ("x" * 100, '"' + "x" * 39 + '…"'),
        ([1, 2], "list with 2 items"),
        ({"a": 1}, "dict with 1 key"),
    ],
)
def test_a_value_is_shown_on_a_short_line(value: Any, shown: str) -> None:
    assert shown_value(value) == shown


def test_a_path_that_leads_nowhere_is_told_from_null() -> None:
    misses = on_results(("deep.down", "equals", 1))
    misses.feed(make_event("tool.result", 0, deep=None))
    assert misses.steps[0].by_type["tool.result"].conditions[0].found == {NOTHING: 1}


def test_types_that_never_occur_are_named() -> None:
    misses = sequence("a", on=["info", "file.updated"])
    misses.feed(info(0, "a"))
    assert misses.unseen == ["file.updated"]
    assert misses.types == {"info": 1}


def test_a_sequence_says_how_far_it_got_and_what_came_instead() -> None:
    misses = sequence("a", "b", "c", on=["info", "error"], consecutive=True)
    for event in (info(0, "a"), make_event("error", 1, v="b"), info(2, "a"), info(3, "b"), info(4, "x"), info(5, "a")):
        misses.feed(event)
    assert [(step.asked, step.fitted) for step in misses.steps] == [(6, 3), (2, 1), (1, 0)]
    assert misses.steps[1].others == {"error": 1}
    assert misses.pending == 1


@pytest.mark.parametrize("consecutive", [True, False])
def test_a_match_outside_the_limit_is_late(*, consecutive: bool) -> None:
    misses = sequence("a", "b", consecutive=consecutive, withinMilliseconds=10)
    for event in (info(0, "a"), info(25, "b"), info(30, "a"), info(45, "b")):
        assert not misses.feed(event)
    # In order the limit ends a beginning before its second step is asked for.
    assert (misses.late, misses.shortest_late_ms) == (({2: 2}, 15) if consecutive else ({1: 2}, None))


def test_events_without_a_value_to_be_correlated_by_are_counted_over_restarts() -> None:
    misses = sequence("a", "b", correlateBy="k")
    misses.feed(info(0, "a"))
    misses.feed(info(0, "a", k=1))
    misses.start_afresh()
    misses.feed(info(0, "b", k=1))
    misses.feed(info(0, "b", k=[]))
    assert (misses.unrelated, misses.matched, misses.pending) == (2, 0, 0)


def test_a_pattern_that_takes_too_long_is_given_up_as_in_a_run() -> None:
    misses = on_results(("toolName", "matches", "^(a|aa)+$(?=)"))
    for _ in range(MAX_OVERRUNS + 2):
        misses.feed(make_event("tool.result", 0, toolName="a" * 60 + "!"))
    assert misses.steps[0].asked == MAX_OVERRUNS
