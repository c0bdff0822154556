"""How answers are held to a JSON Schema (spec sentinels 7)."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hankwatch.core.errors import SchemaFault
from hankwatch.sandbox import schema

JSON = dict[str, Any]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"type": "strin"}, "/type: 'strin'"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength: -1"),
        ({"$ref": "https://example.org/other.json"}, "leaves the document"),
        ({"items": {"$ref": "file:///etc/passwd"}}, "/items/$ref: 'file:///etc/passwd' leaves the document"),
        ({"$ref": "#/$defs/missing"}, "leads nowhere"),
        ({"properties": {"a/b": {"pattern": "(?<=a"}}}, "/properties/a~1b/pattern: is no regular expression"),
        ({"pattern": r"^\p{L}+$"}, r"/pattern: \p{…} and \u{…} are not supported"),
        ({"patternProperties": {"(": {}}}, "/patternProperties: is no regular expression"),
        ({"patternProperties": {"(?<=a": {}}}, "/patternProperties: is no regular expression"),
        ({"patternProperties": {r"\p{L}": {}}}, r"/patternProperties: \p{…} and \u{…} are not supported"),
        ({"patternProperties": {"a": {}}, "unevaluatedProperties": False}, "does not work together"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#"},
            "write https://json-schema.org/draft/2020-12/schema or http://json-schema.org/draft-07/schema",
        ),
        ({"$schema": 5}, "/$schema: 5 is not supported"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_place(broken: JSON, reason: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        schema.check(broken)
    assert reason in caught.value.reason


def test_a_schema_may_refer_within_itself() -> None:
    tree: JSON = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "$ref": "#/$defs/node",
    }
    schema.check(tree)
    assert schema.validate(tree, {"next": {"next": {}}}) == []
    assert schema.validate(tree, {"next": {"next": 1}}) == ["/next/next: 1 is not of type 'object'"]


def test_properties_and_values_may_be_called_like_keywords() -> None:
    named: JSON = {
        "properties": {"$ref": {"type": "string"}, "pattern": {"type": "number"}, "patternProperties": True},
        "const": {"$ref": "http://example.org", "pattern": 1},
    }
    schema.check(named)
    assert schema.validate(named, {"$ref": "http://example.org", "pattern": 1}) == []


def test_each_error_has_its_pointer() -> None:
    given: JSON = {
        "properties": {"a/b": {"items": {"type": "string"}}, "e": {"format": "email"}},
        "required": ["missing"],
    }
    assert sorted(schema.validate(given, {"a/b": ["x", 1], "e": "nobody"})) == [
        "(root): 'missing' is a required property",
        "/a~1b/1: 1 is not of type 'string'",
        "/e: 'nobody' is not a 'email'",
    ]


def test_of_a_failed_choice_the_nearest_branch_is_told() -> None:
    choice: JSON = {
        "anyOf": [
            {"type": "null"},
            {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        ]
    }
    assert schema.validate(choice, {"n": "x"}) == ["/n: 'x' is not of type 'integer'"]


def test_at_most_twenty_errors_are_told_and_none_at_length() -> None:
    told = schema.validate({"items": {"type": "null"}}, ["x" * 10_000] * 50)
    assert len(told) == 20
    assert all(len(error) < 400 and error.endswith("is not of type 'null'") for error in told)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\d+$", "12", "\u0661"),
        (r"(?<year>\d{4})", "2026", "x"),
        (r"a$", "a", "a\n"),
        (r"^(a+)+$", "a" * 50, "a" * 50 + "!"),
    ],
)
def test_patterns_have_the_meaning_of_javascript(pattern: str, good: str, bad: str) -> None:
    assert schema.validate({"pattern": pattern}, good) == []
    assert len(schema.validate({"pattern": pattern}, bad)) == 1
    assert schema.validate({"pattern": pattern}, 1) == []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-01-01T00:00:00.123456789+01:00", "2026-01-01T00:00:00"),
        ("date-time", "1990-12-31T23:59:60Z", "2026-13-01T00:00:00Z"),
        ("email", "a.b+c@example.org", "a@b"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "1"),
        ("time", "23:59:59Z", "24:00:00"),
        ("uri", "https://example.org/a?b#c", "example.org"),
        ("uri", "urn:isbn:1", "http://a b"),
        ("uuid", "550e8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000"),
    ],
)
def test_known_formats_are_held_to(name: str, good: str, bad: str) -> None:
    assert schema.validate({"format": name}, good) == []
    assert schema.validate({"format": name}, bad) != []
    assert schema.validate({"format": name}, 5) == []


def test_unknown_formats_only_describe() -> None:
    assert schema.validate({"format": "haiku"}, "anything") == []


@pytest.mark.parametrize(("value", "valid"), [(1, True), (1.0, True), (True, False), ("1", False), (1.5, False)])
def test_types_are_those_of_json(value: Any, valid: bool) -> None:
    assert (schema.validate({"type": "integer"}, value) == []) is valid


@pytest.mark.parametrize(
    "circle",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"anyOf": [{"type": "null"}, {"not": {"$ref": "#/$defs/a"}}]}}},
        {"properties": {"x": {"allOf": [{"$ref": "#/properties/x"}]}}},
        {"$defs": {"a": {"$anchor": "me", "if": {"$ref": "#me"}}}},
        {"dependentSchemas": {"a": {"$dynamicRef": "#"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": {"$ref": "#"}}},
    ],
)
def test_a_schema_that_comes_back_to_itself_with_the_same_value_is_refused(circle: JSON) -> None:
    with pytest.raises(SchemaFault, match="refers to itself without end"):
        schema.check(circle)


@pytest.mark.parametrize(
    "tree",
    [
        {"items": {"$ref": "#"}},
        {"anyOf": [{"type": "string"}, {"additionalProperties": {"$ref": "#"}}]},
        {"$defs": {"a": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]},
        {"const": {"$ref": "#"}},
    ],
)
def test_a_schema_may_come_back_to_itself_with_a_part_of_the_value(tree: JSON) -> None:
    schema.check(tree)


def test_many_references_to_references_are_checked_once_each() -> None:
    chain: JSON = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    schema.check({"$defs": {**chain, "d60": {}}, "$ref": "#/$defs/d0"})


def test_a_schema_of_draft_07_is_held_to_its_own_rules() -> None:
    old: JSON = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"word": {"type": "string", "pattern": r"^\w+$"}},
        "properties": {"pair": {"items": [{"$ref": "#/definitions/word"}, {"type": "number"}]}},
        "additionalProperties": False,
    }
    assert schema.validate(old, {"pair": ["a", 1]}) == []
    assert schema.validate(old, {"pair": [1, "a"], "x": 1}) != []
    assert len(schema.validate(old, {"pair": [1, "a"], "x": 1})) == 3


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [(r"^\d+$", "12", "\u0661"), (r"(?<year>\d{4})", "2026", "x"), (r"^(a+)+$", "a" * 50, "a" * 5_000 + "!")],
)
def test_patterns_of_keys_have_the_meaning_of_javascript(pattern: str, good: str, bad: str) -> None:
    closed = {"patternProperties": {pattern: {"type": "number"}}, "additionalProperties": False}
    assert schema.validate(closed, {good: 1}) == []
    assert len(schema.validate(closed, {good: "x"})) == 1
    assert len(schema.validate(closed, {bad: 1})) == 1
    others = {"patternProperties": {pattern: True}, "additionalProperties": {"type": "null"}}
    assert schema.validate(others, {good: 1, bad: None}) == []
    assert len(schema.validate(others, {good: 1, bad: 1})) == 1


def test_all_keys_that_are_not_allowed_are_told_together() -> None:
    closed: JSON = {"properties": {"a": {}}, "additionalProperties": False}
    assert schema.validate(closed, {"a": 1, "b": 1}) == [
        "(root): Additional properties are not allowed ('b' was unexpected)"
    ]
    assert "'b', 'c' were unexpected" in schema.validate(closed, {"b": 1, "c": 1})[0]


@given(st.decimals(-10_000, 10_000, places=4), st.integers(1, 9_999), st.integers(0, 4))
def test_a_multiple_is_one_of_decimals_as_they_are_written(number: Decimal, digits: int, places: int) -> None:
    factor = Decimal(digits).scaleb(-places)
    valid = schema.validate({"multipleOf": json.loads(str(factor))}, json.loads(str(number))) == []
    assert valid is (number % factor == 0)


@pytest.mark.parametrize(
    ("factor", "value", "valid"),
    [
        (0.01, 19.99, True),
        (0.01, 0.075, False),
        (1e-300, 1e300, True),
        (3, 10**40, False),
        (0.1, "x", True),
        (2, True, True),
    ],
)
def test_multiples_have_no_rounding(factor: float, value: Any, valid: bool) -> None:
    assert (schema.validate({"multipleOf": factor}, value) == []) is valid
