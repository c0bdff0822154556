"""Laws of conditions, patterns, sequences and the index, against oracles that take no short cuts."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.support.oracles import holds, matches

from hankwatch.events.envelope import Event
from hankwatch.matching.conditions import Condition, compile_conditions
from hankwatch.matching.regexes import compile_js
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger, Trigger, TriggerIndex
from hankwatch.testing import make_event

CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
TRIGGER: TypeAdapter[EventTrigger | SequenceTrigger] = TypeAdapter(Trigger)

SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, -2, "", "a", "1", "ab", "😀a", "true"])
KEYS = st.sampled_from(["a", "b", "0", "1", "length"])
DATA = st.dictionaries(
    KEYS,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)),
    max_size=4,
)
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(".".join)
OPERANDS = st.one_of(
    st.tuples(st.sampled_from(["equals", "notEquals"]), SCALARS),
    st.tuples(st.sampled_from(["in", "notIn"]), st.lists(SCALARS, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["contains", "notContains"]), st.sampled_from(["", "a", "1", "ab"])),
    st.tuples(
        st.sampled_from(["greaterThan", "greaterThanOrEqual", "lessThan", "lessThanOrEqual"]),
        st.sampled_from([-2, 0, 0.5, 1, 1.0]),
    ),
    st.tuples(st.just("exists"), st.booleans()),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(PATHS, OPERANDS), max_size=3), DATA)
def test_conditions_are_the_conjunction_of_what_each_says(parts: list[Any], data: dict[str, Any]) -> None:
    conditions = [
        CONDITION.validate_python({"path": path, "operator": operator, "value": value})
        for path, (operator, value) in parts
    ]
    assert compile_conditions(conditions).hold(data) is all(holds(one, data) for one in conditions)


ATOMS = st.sampled_from(["a", "b", r"\.", r"\d", r"\w", r"\W", "[ab]", "[^a]", "[0-9_]", r"\b", "^", r"\n", r"\x41"])


def _combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeat = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map("({})".format),
        st.tuples(inner.map("(?:{})".format), repeat).map("".join),
    )


@settings(max_examples=200)
@given(st.recursive(ATOMS, _combine, max_leaves=6), st.booleans(), st.text("abA0._ \né", max_size=8))
def test_what_both_flavours_share_matches_alike(pattern: str, to_the_end: bool, text: str) -> None:
    ours = f"(?:{pattern})$" if to_the_end else pattern
    theirs = f"(?:{pattern})\\Z" if to_the_end else pattern
    assert compile_js(ours).search(text) is bool(re.search(theirs, text, re.ASCII))
    # The engine with backtracking, forced by a lookahead that always holds, agrees.
    assert compile_js(f"(?=)(?:{ours})").search(text) is bool(re.search(theirs, text, re.ASCII))


LETTERS = st.sampled_from("abc")
TYPES = ["info", "error", "tool.result", "watchdog.nudge"]
VALUES = st.sampled_from([0, 1, True, "x"])
STEP_CONDITIONS = st.lists(
    st.one_of(
        VALUES.map(lambda value: {"path": "v", "operator": "equals", "value": value}),
        VALUES.map(lambda value: {"path": "v", "operator": "notEquals", "value": value}),
        st.lists(VALUES, min_size=1, max_size=2).map(lambda values: {"path": "v", "operator": "in", "value": values}),
        VALUES.map(lambda value: {"path": "k", "operator": "equals", "value": value}),
    ),
    max_size=2,
)
NAMES = st.lists(st.sampled_from([*TYPES, "*"]), min_size=1, max_size=3)
EVENT_TRIGGERS = st.fixed_dictionaries({"type": st.just("event"), "on": NAMES, "conditions": STEP_CONDITIONS})
SEQUENCE_TRIGGERS = st.fixed_dictionaries(
    {
        "type": st.just("sequence"),
        "interestFilter": st.fixed_dictionaries({"on": NAMES}),
        "pattern": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from([*TYPES, "*", "*"]), "conditions": STEP_CONDITIONS},
            ),
            min_size=1,
            max_size=4,
        ),
        "options": st.fixed_dictionaries(
            {"consecutive": st.booleans()},
            optional={"withinMilliseconds": st.integers(1, 12), "correlateBy": st.just("k")},
        ),
    }
)


# Few types and values, so that most patterns occur, some more than once and some only too late.
DENSE_STEPS = st.fixed_dictionaries(
    {"type": st.sampled_from(["info", "error", "*"])},
    optional={"conditions": st.sampled_from([0, 1]).map(lambda v: [{"path": "v", "operator": "equals", "value": v}])},
)
DENSE_SEQUENCES = st.fixed_dictionaries(
    {
        "type": st.just("sequence"),
        "interestFilter": st.sampled_from([{"on": ["info", "error"]}, {"on": ["*"]}]),
        "pattern": st.lists(DENSE_STEPS, min_size=2, max_size=4),
        "options": st.fixed_dictionaries(
            {"consecutive": st.booleans()},
            optional={"withinMilliseconds": st.integers(2, 8), "correlateBy": st.just("k")},
        ),
    }
)


def histories(types: list[str], payloads: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[Event]]:
    """Up to 14 events on a clock that stands still or moves."""
    steps = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(types), payloads), max_size=14)

    def on_a_clock(drawn: list[tuple[int, str, dict[str, Any]]]) -> list[Event]:
        instants = accumulate(gap for gap, _, _ in drawn)
        return [make_event(name, at, **data) for at, (_, name, data) in zip(instants, drawn, strict=True)]

    return steps.map(on_a_clock)


SPARSE_HISTORIES = histories(
    TYPES, st.fixed_dictionaries({"v": VALUES}, optional={"k": st.sampled_from([1, 1.0, True, None, [1]])})
)
DENSE_HISTORIES = histories(
    ["info", "error"], st.fixed_dictionaries({"v": st.sampled_from([0, 1]), "k": st.sampled_from([1, 1.0, "1"])})
)


def routed(trigger: EventTrigger | SequenceTrigger, events: Sequence[Event]) -> list[list[str]]:
    index: TriggerIndex[str] = TriggerIndex(lambda key, reason: None)
    index.add("s", trigger)
    return [[event.id for event in match.events] for event in events for match in index.route(event)]


@settings(max_examples=300)
@given(DENSE_SEQUENCES, DENSE_HISTORIES)
def test_a_sequence_finds_what_the_whole_history_holds(trigger: dict[str, Any], events: list[Event]) -> None:
    model = TRIGGER.validate_python(trigger)
    assert routed(model, events) == matches(model, events)


@settings(max_examples=200)
@given(
    st.text("abc", min_size=2, max_size=4),
    st.integers(3, 20),
    st.lists(st.tuples(st.integers(0, 3), LETTERS), min_size=6, max_size=14),
)
def test_no_match_inside_the_limit_is_missed(pattern: str, within_ms: int, stream: list[tuple[int, str]]) -> None:
    steps = [
        {"type": "info", "conditions": [{"path": "message", "operator": "equals", "value": letter}]}
        for letter in pattern
    ]
    options = {"consecutive": False, "withinMilliseconds": within_ms}
    model = TRIGGER.validate_python(
        {"type": "sequence", "interestFilter": {"on": ["info"]}, "pattern": steps, "options": options}
    )
    instants = accumulate(gap for gap, _ in stream)
    events = [make_event("info", at, message=letter) for at, (_, letter) in zip(instants, stream, strict=True)]
    assert routed(model, events) == matches(model, events)


@settings(max_examples=150)
@given(
    st.lists(EVENT_TRIGGERS | SEQUENCE_TRIGGERS, min_size=1, max_size=6),
    SPARSE_HISTORIES,
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 5)), max_size=4),
)
def test_triggers_that_share_an_index_do_not_notice_each_other(
    triggers: list[dict[str, Any]], events: list[Event], removals: list[tuple[int, int]]
) -> None:
    models = [TRIGGER.validate_python(trigger) for trigger in triggers]
    index: TriggerIndex[int] = TriggerIndex(lambda key, reason: None)
    for key, model in enumerate(models):
        index.add(key, model)
    got: list[tuple[int, list[str]]] = []
    for place, event in enumerate(events):
        for at, key in removals:
            if at == place:
                index.remove(key)
        got += [(match.key, [e.id for e in match.events]) for match in index.route(event)]
    seen = {key: min([at for at, who in removals if who == key], default=len(events)) for key in range(len(models))}
    expected = [(key, ids) for key, model in enumerate(models) for ids in matches(model, events[: seen[key]])]
    order = {event.id: place for place, event in enumerate(events)}
    assert got == sorted(expected, key=lambda match: (order[match[1][-1]], match[0]))
