"""Each kind of assertion on a report: when it holds, and what is said when it does not."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.checks import asserted, texts, values

from hankwatch.bench.check.rules import TESTS
from hankwatch.bench.check.seen import Seen

VERDICT = values({"verdict": "good", "score": 3, "tags": ["a", "b"]}, {"verdict": "bad", "score": None})

HOLDS: list[tuple[Seen, dict[str, Any]]] = [
    (texts("one", "two"), {"contains": "two"}),
    (texts("one", "two"), {"contains": "one\n\n---\ntwo"}),
    (texts("one"), {"notContains": "two"}),
    (texts("a1", "b2"), {"matches": r"b\d$", "entry": 2}),
    (texts("a1"), {"notMatches": "^A"}),
    (texts("x", "y"), {"entry": "any", "equals": "y"}),
    (texts("x", "y"), {"entry": "last", "notEquals": "x"}),
    (VERDICT, {"pointer": "/verdict", "in": ["good", "bad"]}),
    (VERDICT, {"pointer": "/verdict", "notIn": ["ugly"]}),
    (VERDICT, {"entry": 1, "pointer": "/tags", "contains": "a"}),
    (VERDICT, {"entry": 1, "pointer": "/tags/1", "equals": "b"}),
    (VERDICT, {"entry": 1, "pointer": "/score", "greaterThan": 2, "lessThan": 4}),
    (VERDICT, {"entry": 1, "pointer": "/score", "greaterThanOrEqual": 3, "lessThanOrEqual": 3}),
    (VERDICT, {"entry": "last", "pointer": "/score", "equals": None}),
    (VERDICT, {"entry": "last", "pointer": "/tags", "exists": False}),
    (VERDICT, {"pointer": "/score", "exists": True}),
    (VERDICT, {"entry": "any", "schema": {"required": ["tags"]}}),
    (values("good", "bad"), {"pointer": "", "in": ["good", "bad"]}),
]

FAILS: list[tuple[Seen, dict[str, Any], list[str]]] = [
    (texts("one"), {"contains": "two"}, ['it: the report should contain "two"', "| ---", "| one"]),
    (texts("a\nbad\nc"), {"notContains": "bad"}, ['it: the report should not contain "bad"', "| bad"]),
    (texts("a1"), {"matches": r"b\d"}, [r'it: the report should match "b\\d"', "| ---", "| a1"]),
    (texts("a1\nb2"), {"notMatches": r"b\d"}, [r'it: the report should not match "b\\d"', "| b2"]),
    (texts("x"), {"entry": 2, "contains": "x"}, ["it: entry 2 is asked for; the report has 1 entry"]),
    (Seen(), {"entry": "every", "contains": "x"}, ["it: an entry is asked for; the report has no entries"]),
    (texts("x", "y"), {"entry": "every", "equals": "x"}, ['it: entry 2 should be "x"', "| y"]),
    (
        texts("x", "y"),
        {"entry": "any", "equals": "z"},
        ['it: none of 2 entries is as expected; the last: entry 2 should be "z"', "| y"],
    ),
    (VERDICT, {"pointer": "/verdict", "notEquals": "bad"}, ['it: /verdict of entry 2 should not be "bad"', "| bad"]),
    (VERDICT, {"pointer": "/verdict", "in": ["good"]}, ['it: /verdict of entry 2 should be one of ["good"]', "| bad"]),
    (VERDICT, {"pointer": "/verdict", "notIn": ["bad"]}, ['it: /verdict of entry 2 should be none of ["bad"]']),
    (VERDICT, {"pointer": "/score", "greaterThan": 3}, ["it: /score of entry 1 should be above 3", "it is 3"]),
    (VERDICT, {"pointer": "/score", "lessThan": 3}, ["it: /score of entry 1 should be below 3", "it is 3"]),
    (VERDICT, {"pointer": "/score", "greaterThanOrEqual": 4}, ["it: /score of entry 1 should be 4 or more"]),
    (VERDICT, {"pointer": "/score", "lessThanOrEqual": 2}, ["it: /score of entry 1 should be 2 or less", "it is 3"]),
    (
        VERDICT,
        {"pointer": "/tags", "exists": True},
        ["it: /tags of entry 2 is missing", 'the entry has the keys "verdict", "score"'],
    ),
    (VERDICT, {"entry": 1, "pointer": "/tags", "exists": False}, ["it: /tags of entry 1 should be missing"]),
    (VERDICT, {"entry": 2, "contains": "bad"}, ['it: entry 2 should contain "bad"']),
    (
        VERDICT,
        {"pointer": "/score", "schema": {"type": "number"}},
        ["it: /score of entry 2 does not fit the schema", "(root): None is not of type 'number'", "it is null"],
    ),
    (VERDICT, {"pointer": "/tags", "schema": {}}, ["it: /tags of entry 2 is missing"]),
    (VERDICT, {"schema": {"type": 3}}, ["it: the schema cannot be used: /type: 3 is not valid"]),
]


def _named(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else ""


@pytest.mark.parametrize(("seen", "assertion"), HOLDS, ids=_named)
async def test_it_holds(seen: Seen, assertion: dict[str, Any], tmp_path: Path) -> None:
    assert await asserted(tmp_path, seen, assertion) == []


@pytest.mark.parametrize(("seen", "assertion", "said"), FAILS, ids=_named)
async def test_it_says_what_is_wrong_and_what_is_there(
    seen: Seen, assertion: dict[str, Any], said: list[str], tmp_path: Path
) -> None:
    lines = await asserted(tmp_path, seen, assertion)
    assert lines[0].startswith(said[0])
    assert [line for line in said[1:] if line not in lines] == []


def test_every_operator_is_shown_to_hold_and_to_fail() -> None:
    assert set(TESTS) <= {key for _, assertion in HOLDS for key in assertion}
    assert set(TESTS) <= {key for _, assertion, _ in FAILS for key in assertion}


async def test_every_key_of_an_assertion_must_hold(tmp_path: Path) -> None:
    lines = await asserted(tmp_path, texts("one two"), {"contains": "one", "notContains": "two"})
    assert lines == ['it: the report should not contain "two"', "| one two"]


async def test_any_means_one_entry_for_which_all_keys_hold(tmp_path: Path) -> None:
    seen = texts("a only", "b only", "a and b")
    assert await asserted(tmp_path, seen, {"entry": "any", "contains": "a", "matches": "b$"}) == []
    assert await asserted(tmp_path, seen, {"entry": "any", "contains": "only", "matches": "a$"})


async def test_true_is_not_one_and_one_is_one_point_zero(tmp_path: Path) -> None:
    seen = values({"n": 1})
    assert await asserted(tmp_path, seen, {"pointer": "/n", "equals": 1.0}) == []
    assert await asserted(tmp_path, seen, {"pointer": "/n", "equals": True})


async def test_a_schema_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text('{"properties": {"score": {"type": "integer"}}}')
    lines = await asserted(tmp_path, VERDICT, {"schema": "verdict.json"})
    assert lines[:2] == ["it: entry 2 does not fit the schema", "/score: None is not of type 'integer'"]


async def test_a_pattern_that_takes_too_long_is_a_failure_and_says_so(tmp_path: Path) -> None:
    slow = r"(?=(a+)+$)(a+)+\1b$"
    (line, *_) = await asserted(tmp_path, texts("a" * 5_000), {"notMatches": slow})
    assert "takes too long" in line


async def test_a_golden_file_is_the_report_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "golden.md").write_bytes(b"\n---\none\n")
    assert await asserted(tmp_path, texts("one"), {"equalsFile": "golden.md"}) == []
    lines = await asserted(tmp_path, texts("one", "two"), {"equalsFile": "golden.md"})
    assert lines == ["it: the report is not golden.md", "|   one", "|", "| + ---", "| + two", "| +"]


async def test_a_missing_golden_file_is_a_failure_that_says_how_to_make_it(tmp_path: Path) -> None:
    assert await asserted(tmp_path, texts("one"), {"equalsFile": "golden.md"}) == [
        "it: the report: golden.md does not exist; --update writes it"
    ]


def _written(stamp: str, **fields: Any) -> dict[str, Any]:
    return {"text": "x", "timestamp": stamp, "sentinelId": "it", "triggerNumber": 1, **fields}


async def test_when_an_entry_was_written_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(json.dumps(_written("then")) + "\n")
    assert await asserted(tmp_path, values(_written("now")), {"equalsFile": "golden.jsonl"}) == []
    assert await asserted(tmp_path, values(_written("now", cause="drain")), {"equalsFile": "golden.jsonl"})


async def test_a_stamp_that_a_model_answered_is_compared(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"timestamp":"then","triggerNumber":1}\n')
    assert await asserted(tmp_path, values({"timestamp": "now", "triggerNumber": 1}), {"equalsFile": "golden.jsonl"})
