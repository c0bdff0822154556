"""Conditions on an event's data."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hankwatch.matching.conditions import Condition, compile_conditions

CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)

DATA = {
    "n": 1,
    "half": 0.5,
    "yes": True,
    "nothing": None,
    "text": "naïve 😀",
    "list": ["a", 1, True, None],
    "rows": [{"id": 7}],
    "length": 3,
    "tool": {"length": 9, "0": "zero", "": "empty"},
}


def holds(path: str, operator: str, value: Any) -> bool:
    condition = CONDITION.validate_python({"path": path, "operator": operator, "value": value})
    return compile_conditions([condition]).hold(DATA)


@pytest.mark.parametrize(
    ("path", "value", "equal"),
    [
        ("n", 1.0, True),
        ("n", True, False),
        ("yes", 1, False),
        ("yes", True, True),
        ("nothing", None, True),
        ("nothing", False, False),
        ("n", "1", False),
        ("list", "a", False),
    ],
)
def test_equality_is_jsons(path: str, value: Any, equal: bool) -> None:
    assert holds(path, "equals", value) is equal
    assert holds(path, "notEquals", value) is not equal
    assert holds(path, "in", [value, "other"]) is equal
    assert holds(path, "notIn", [value, "other"]) is not equal


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rows.0.id", 7),
        ("list.length", 4),
        ("text.length", 8),
        ("length", 3),
        ("tool.length", 9),
        ("tool.0", "zero"),
        ("tool.", "empty"),
        ("list.1", 1),
    ],
)
def test_a_path_goes_by_own_keys_indexes_and_length(path: str, value: Any) -> None:
    assert holds(path, "equals", value)


@pytest.mark.parametrize(
    "path",
    ["missing", "n.x", "list.01", "list.-1", "list.4", "list.٣", "text.0", "text.length.x", "tool.keys", "rows.id"],
)
def test_a_missing_path_is_false_for_everything_but_exists(path: str) -> None:
    for operator, value in [
        ("equals", None),
        ("notEquals", "x"),
        ("in", [None]),
        ("notIn", ["x"]),
        ("contains", ""),
        ("notContains", "x"),
        ("matches", ""),
        ("notMatches", "x"),
        ("greaterThan", -1),
        ("greaterThanOrEqual", -1),
        ("lessThan", 1e9),
        ("lessThanOrEqual", 1e9),
        ("exists", True),
    ]:
        assert not holds(path, operator, value), operator
    assert holds(path, "exists", False)


def test_null_is_there() -> None:
    assert holds("nothing", "exists", True)
    assert holds("nothing", "notEquals", "x")


def test_negations_hold_for_any_present_value_of_another_kind() -> None:
    assert holds("n", "notContains", "x")
    assert holds("n", "notMatches", "x")
    assert holds("rows", "notIn", ["x"])
    assert not holds("text", "notContains", "naïve")
    assert not holds("text", "notMatches", "^na.ve")


def test_contains_asks_a_string_for_a_part_and_a_list_for_a_member() -> None:
    assert holds("text", "contains", "ïv")
    assert holds("list", "contains", "a")
    assert not holds("list", "contains", "1")
    assert not holds("tool", "contains", "length")


def test_order_is_for_numbers_only() -> None:
    assert holds("half", "greaterThan", 0)
    assert holds("n", "greaterThanOrEqual", 1.0)
    assert holds("n", "lessThanOrEqual", 1)
    assert not holds("n", "lessThan", 1)
    assert not holds("yes", "greaterThan", 0)
    assert not holds("text", "lessThan", 9)


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("equals", []),
        ("in", []),
        ("in", "x"),
        ("contains", 5),
        ("matches", None),
        ("greaterThan", "1"),
        ("greaterThan", True),
        ("lessThan", float("nan")),
        ("exists", 1),
        ("isEqual", 1),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(operator: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        CONDITION.validate_python({"path": "n", "operator": operator, "value": value})


def test_every_condition_must_hold() -> None:
    both = [
        CONDITION.validate_python({"path": "n", "operator": "equals", "value": 1}),
        CONDITION.validate_python({"path": "half", "operator": "equals", "value": 1}),
    ]
    assert not compile_conditions(both).hold(DATA)
    assert compile_conditions([]).hold(DATA)
