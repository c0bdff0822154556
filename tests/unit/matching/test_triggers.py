"""Triggers in their shared index."""

from typing import Any

import pytest

from hankwatch.events.envelope import Event
from hankwatch.matching import sequences
from hankwatch.matching.regexes import RegexInvalid
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger, TriggerIndex
from hankwatch.testing import make_event


def event_trigger(*on: str, **equals: Any) -> EventTrigger:
    conditions = [{"path": path, "operator": "equals", "value": value} for path, value in equals.items()]
    return EventTrigger.model_validate({"type": "event", "on": list(on), "conditions": conditions})


def sequence(*texts: str, on: tuple[str, ...] = ("info",), **options: Any) -> SequenceTrigger:
    """Steps on `info` events by their message."""
    steps = [{"type": "info", "conditions": [{"path": "message", "operator": "equals", "value": t}]} for t in texts]
    return SequenceTrigger.model_validate(
        {"type": "sequence", "interestFilter": {"on": list(on)}, "pattern": steps, "options": options}
    )


def info(message: str, at: int = 0, **data: Any) -> Event:
    return make_event("info", at, message=message, **data)


def refuse(key: Any, reason: str) -> None:
    pytest.fail(f"{key}: {reason}")


def index_of(**triggers: EventTrigger | SequenceTrigger) -> TriggerIndex[str]:
    index: TriggerIndex[str] = TriggerIndex(refuse)
    for key, trigger in triggers.items():
        index.add(key, trigger)
    return index


def keys(index: TriggerIndex[str], event: Event) -> list[str]:
    return [match.key for match in index.route(event)]


def found(index: TriggerIndex[str], *events: Event) -> list[list[str]]:
    return [[e.data["message"] for e in match.events] for event in events for match in index.route(event)]


def test_matches_come_in_the_order_of_attachment() -> None:
    index = index_of(
        any=event_trigger("*"),
        by_value=event_trigger("info", message="a"),
        by_type=event_trigger("info"),
        steps=sequence("a"),
        other_value=event_trigger("info", message="b"),
        last=event_trigger("*", message="a"),
    )
    assert keys(index, info("a")) == ["any", "by_value", "by_type", "steps", "last"]


def test_a_trigger_named_twice_matches_once() -> None:
    index = index_of(one=event_trigger("*", "info", "info", message="a"))
    assert keys(index, info("a")) == ["one"]


def test_star_reaches_open_types_only_and_never_routed_types_reach_nobody() -> None:
    index = index_of(star=event_trigger("*"), named=event_trigger("watchdog.nudge", "sentinel.output", "pong"))
    assert keys(index, make_event("watchdog.nudge")) == ["named"]
    assert keys(index, make_event("sentinel.output")) == []
    assert keys(index, make_event("pong")) == []
    assert keys(index, make_event("state.transition", transitionType="SentinelStatesUpdated")) == []
    assert keys(index, make_event("state.transition", transitionType="CodonStarted")) == ["star"]


def test_one_of_several_values_finds_the_trigger() -> None:
    condition = {"path": "message", "operator": "in", "value": ["a", 1, True]}
    index = index_of(one=EventTrigger.model_validate({"type": "event", "on": ["info"], "conditions": [condition]}))
    assert [bool(index.route(info(value))) for value in ("a", "b", 1, 1.0, True, False)] == [  # type: ignore[arg-type]
        True, False, True, True, True, False,
    ]  # fmt: skip


def test_a_removed_trigger_is_silent_and_leaves_nothing_behind() -> None:
    index = index_of(a=event_trigger("info", message="a"), b=sequence("a", "b"))
    index.route(info("a"))
    index.remove("a")
    index.remove("b")
    index.remove("b")
    assert keys(index, info("b")) == []
    assert index._slots._tables == {}


def test_a_key_in_use_is_refused() -> None:
    index = index_of(a=event_trigger("info"))
    with pytest.raises(ValueError, match="already"):
        index.add("a", event_trigger("info"))


def test_an_invalid_pattern_attaches_nothing() -> None:
    index = index_of()
    condition = {"path": "message", "operator": "matches", "value": "("}
    with pytest.raises(RegexInvalid):
        index.add("a", EventTrigger.model_validate({"type": "event", "on": ["*"], "conditions": [condition]}))
    index.add("a", event_trigger("info"))
    assert keys(index, info("x")) == ["a"]


def test_an_owner_whose_patterns_run_out_of_time_three_times_is_given_up() -> None:
    told: list[tuple[str, str]] = []
    index: TriggerIndex[str] = TriggerIndex(lambda key, reason: told.append((key, reason)))
    conditions = [{"path": "message", "operator": "matches", "value": r"^(a|aa)+$(?=)"}]
    index.add("slow", EventTrigger.model_validate({"type": "event", "on": ["info"], "conditions": conditions}))
    index.add("next", event_trigger("info"))
    evil = info("a" * 5_000 + "b")
    assert [keys(index, evil) for _ in range(3)] == [["next"]] * 3
    assert [key for key, _ in told] == ["slow"]
    assert keys(index, info("aaa")) == ["next"]


def test_a_failing_trigger_is_given_up_and_the_others_see_every_event() -> None:
    told: list[str] = []
    index: TriggerIndex[str] = TriggerIndex(lambda key, _: told.append(key))
    for key in ("before", "broken", "after"):
        index.add(key, event_trigger("info"))

    def fail(_: Event) -> None:
        raise MemoryError

    index._entries["broken"].feed = fail
    assert keys(index, info("x")) == ["before", "after"]
    assert told == ["broken"]
    assert keys(index, info("x")) == ["before", "after"]


def test_what_is_removed_while_routing_does_not_match() -> None:
    index: TriggerIndex[str] = TriggerIndex(refuse)
    index.add("first", event_trigger("info"))
    index.add("second", event_trigger("info"))

    def unload_both(event: Event) -> tuple[Event, ...]:
        index.remove("first")
        index.remove("second")
        index.add("third", event_trigger("info"))
        return (event,)

    index._entries["first"].feed = unload_both
    assert keys(index, info("x")) == []
    assert keys(index, info("x")) == ["third"]


def test_steps_must_be_adjacent_among_the_considered_events() -> None:
    index = index_of(s=sequence("a", "b", on=("info", "error")))
    assert found(index, info("a"), make_event("rig.output"), info("b")) == [["a", "b"]]
    assert found(index, info("a"), make_event("error", message="x"), info("b")) == []


def test_a_broken_off_beginning_can_be_the_beginning_of_a_match() -> None:
    index = index_of(s=sequence("a", "a", "b"))
    assert found(index, *map(info, "aaab")) == [["a", "a", "b"]]


def test_matches_of_a_sequence_do_not_overlap() -> None:
    index = index_of(s=sequence("a", "b", "a"))
    assert found(index, *map(info, "abababa")) == [["a", "b", "a"], ["a", "b", "a"]]


def test_with_gaps_each_step_is_the_earliest_event() -> None:
    index = index_of(s=sequence("a", "b", consecutive=False))
    first, second = info("a"), info("a")
    (match,) = [m for e in (first, second, info("x"), info("b")) for m in index.route(e)]
    assert match.events[0] is first


def test_a_match_inside_the_limit_is_not_hidden_by_an_earlier_beginning() -> None:
    index = index_of(s=sequence("a", "b", consecutive=False, withinMilliseconds=10))
    starts = [info("a", 0), info("a", 95), info("a", 97)]
    (match,) = [m for e in (*starts, info("b", 100)) for m in index.route(e)]
    assert match.events[0] is starts[2]


def test_with_one_beginning_each_step_is_the_earliest_event_also_inside_a_limit() -> None:
    index = index_of(s=sequence("a", "b", "c", consecutive=False, withinMilliseconds=10))
    events = [info("a", 1), info("b", 2), info("b", 3), info("c", 4)]
    (match,) = [m for e in events for m in index.route(e)]
    assert match.events == (events[0], events[1], events[3])


@pytest.mark.parametrize("consecutive", [True, False])
def test_the_limit_itself_is_inside(consecutive: bool) -> None:
    index = index_of(s=sequence("a", "b", consecutive=consecutive, withinMilliseconds=10))
    assert found(index, info("a", 0), info("b", 10)) == [["a", "b"]]
    assert found(index, info("a", 20), info("b", 31)) == []


def test_correlated_steps_share_a_value() -> None:
    index = index_of(s=sequence("a", "b", correlateBy="context.id"))
    events = [
        info("a", context={"id": 1}),
        info("a", context={"id": True}),
        info("a"),
        info("b", context={"id": [1]}),
        info("b", context={"id": 2}),
        info("b", context={"id": 1.0}),
    ]
    (match,) = [m for e in events for m in index.route(e)]
    assert match.events == (events[0], events[5])


def test_the_oldest_of_too_many_correlations_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MAX_AUTOMATA", 3)
    index = index_of(s=sequence("a", "b", correlateBy="code"))
    assert found(index, *(info("a", code=n) for n in range(4))) == []
    assert index.dropped("s") == 1
    assert found(index, info("b", code=0), info("b", code=3)) == [["a", "b"]]


def test_correlations_that_wait_for_nothing_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MAX_AUTOMATA", 1)
    index = index_of(s=sequence("a", "b", correlateBy="code"))
    assert found(index, info("a", code=1), *(info("x", code=n) for n in range(2, 9)), info("b", code=1)) == [["a", "b"]]
    assert found(index, info("a", code=2), info("b", code=2)) == [["a", "b"]]
    assert index.dropped("s") == 0


def test_correlations_out_of_time_are_not_counted_as_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MAX_AUTOMATA", 1)
    index = index_of(s=sequence("a", "b", correlateBy="code", consecutive=False, withinMilliseconds=10))
    assert found(index, info("a", 0, code=1), info("a", 50, code=2), info("b", 60, code=2)) == [["a", "b"]]
    assert index.dropped("s") == 0


def test_a_sequence_waiting_for_its_first_step_is_not_touched_by_other_events() -> None:
    index = index_of(s=sequence("a", "b"))
    asked: list[str] = []
    entry = index._entries["s"]
    feed = entry.feed
    entry.feed = lambda event: asked.append(event.data["message"]) or feed(event)  # type: ignore[func-returns-value]
    for text in "xyaxyab":
        index.route(info(text))
    assert asked == ["a", "x", "a", "b"]
