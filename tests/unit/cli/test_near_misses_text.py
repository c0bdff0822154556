"""Near misses in words (spec cli, ``try --where``)."""

from typing import Any

from pydantic import TypeAdapter

from hankwatch.cli.near_misses import near_misses
from hankwatch.events.envelope import Event
from hankwatch.matching.near_misses import NearMisses
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger, Trigger
from hankwatch.testing import make_event

TRIGGER: TypeAdapter[EventTrigger | SequenceTrigger] = TypeAdapter(Trigger)
FAILED = {"path": "isError", "operator": "equals", "value": True}
BASH = {"path": "toolName", "operator": "equals", "value": "Bash"}


def said(trigger: dict[str, Any], *events: Event) -> list[str]:
    """Without the ids of the examples, which are made anew each time."""
    misses = NearMisses(TRIGGER.validate_python(trigger))
    for event in events:
        misses.feed(event)
    return [line.plain.partition("first: event")[0].strip() for line in near_misses(misses)][1:]


def result(at_ms: int, tool: str, **data: Any) -> Event:
    return make_event("tool.result", at_ms, toolName=tool, **data)


def sequence(*steps: dict[str, Any], on: list[str], **options: Any) -> dict[str, Any]:
    return {"type": "sequence", "interestFilter": {"on": on}, "pattern": list(steps), "options": options}


def test_the_condition_that_failed_most_comes_first() -> None:
    trigger = {"type": "event", "on": ["tool.result", "file.updated"], "conditions": [BASH, FAILED]}
    events = [result(0, "Bash", isError=False)] * 3 + [result(0, "Read", isError=True), result(0, "Bash")]
    assert said(trigger, *events) == [
        "file.updated never occurs here; what does: tool.result × 5",
        "tool.result × 5: 0 met every condition",
        "4 failed isError equals true: found false × 3, nothing there × 1",
        "",
        '1 failed toolName equals "Bash": found "Read" × 1',
        "",
    ]


def test_a_condition_that_was_not_alone_in_the_way_says_so() -> None:
    trigger = {"type": "event", "on": ["tool.result"], "conditions": [BASH, FAILED]}
    lines = said(trigger, result(0, "Read", isError=False), result(0, "Bash", isError=False))
    assert lines[1] == "2 failed isError equals true: found false × 2; 1 failed this alone"
    assert lines[3].endswith('found "Read" × 1; 0 failed this alone')


def test_a_consecutive_sequence_names_what_came_instead() -> None:
    trigger = sequence(
        {"type": "tool.result"}, {"type": "error"}, {"type": "error"}, on=["tool.result", "error", "info"]
    )
    assert said(trigger, result(0, "Bash"), make_event("info", 1), result(2, "Bash"), make_event("error", 3)) == [
        "step 1 tool.result: 4 events came when it was waited for, taken 2 ×",
        "2 of another type: info × 1, error × 1",
        "step 2 error: 2 events came when it was waited for, taken 1 ×",
        "1 of another type: info × 1 (steps must follow at once: consecutive)",
        "step 3 error: nothing that is considered came after the step before it",
        "at the end 2 of 3 steps were taken",
    ]


def test_a_sequence_in_time_says_how_far_the_limit_let_it_come() -> None:
    trigger = sequence({"type": "tool.result"}, {"type": "error"}, on=["tool.result", "error"], withinMilliseconds=50)
    lines = said(trigger, result(0, "Bash"), make_event("error", 70))
    assert lines[3:] == ["the limit of 50 ms ended 1 with 2 of 2 steps", "the quickest with all steps took 70 ms"]


def test_a_correlated_sequence_says_that_nothing_came_with_the_same_value() -> None:
    steps = {"type": "assistant.action"}, {"type": "tool.result"}, {"type": "error"}
    trigger = sequence(*steps, on=["assistant.action", "tool.result"], consecutive=False, correlateBy="toolUseId")
    events = make_event("assistant.action", 0, toolUseId="a"), result(1, "Bash", toolUseId="b"), result(2, "Bash")
    assert said(trigger, *events) == [
        "error never occurs here; what does: tool.result × 2, assistant.action × 1",
        "step 1 assistant.action: 2 events came when it was waited for, taken 1 ×",
        "1 of another type: tool.result × 1",
        "step 2 tool.result: nothing that is considered came after the step before it with the same toolUseId",
        "step 3 error: not reached, the step before it was never taken",
        "1 event had no value at toolUseId to be correlated by",
        "at the end 1 of 3 steps were taken",
    ]
