"""Faults of a document: all at once, each with its place and what would be right (design rule 8, bugs A19)."""

from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, add_fault, validate


class Count(ConfigModel):
    """Fires at a threshold."""

    strategy: Literal["count"]
    threshold: Annotated[int, Field(gt=0, le=1000)]
    """How many."""


class Quiet(ConfigModel):
    """Fires after a pause."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"max_wait"})

    strategy: Literal["debounce"]
    max_wait: Annotated[int, Field(gt=0)] | None = None


class Root(ConfigModel):
    """A whole file."""

    name: Annotated[str, Field(min_length=1)] = "x"
    files: str | tuple[str, ...] = ()
    execution: Annotated[Count | Quiet, Field(discriminator="strategy")] | None = None
    ratio: Annotated[float, Field(ge=0, le=2)] = 0.0
    env: dict[str, str] = Field(default_factory=dict)


def _check(value: Any) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    made = validate(Root, Document.from_value(value), diagnostics)
    assert (made is None) == (not diagnostics.ok)
    return diagnostics.items


def _only(value: Any) -> Diagnostic:
    (fault,) = _check(value)
    return fault


@pytest.mark.parametrize("given", [0, -1, 0.0001, 1e18, "5", True, None, 1001, [1], {}])
def test_a_number_outside_its_range_or_type_is_told_its_range(given: Any) -> None:
    fault = _only({"execution": {"strategy": "count", "threshold": given}})
    assert fault.pointer == "/execution/threshold"
    assert "must be an integer from 1 to 1,000, not " in fault.message


def test_not_a_number_is_refused_with_the_range() -> None:
    faults = _check({"execution": {"strategy": "count", "threshold": float("nan")}})
    assert {fault.pointer for fault in faults} == {"/execution/threshold"}
    assert any("from 1 to 1,000, not NaN" in fault.message for fault in faults)


def test_an_integral_float_is_an_integer_and_an_integer_is_a_float() -> None:
    assert _check({"execution": {"strategy": "count", "threshold": 5.0}, "ratio": 2}) == []


def test_a_misspelled_key_gets_the_one_that_was_meant() -> None:
    faults = _check({"execution": {"strategy": "count", "treshold": 3}})
    assert [(f.code, f.pointer, f.hint) for f in faults] == [
        ("missing-key", "/execution/threshold", "give it an integer from 1 to 1,000"),
        ("unknown-key", "/execution/treshold", "did you mean 'threshold'?"),
    ]


def test_a_key_like_no_other_gets_the_list_of_known_ones() -> None:
    assert "'name', 'files'" in str(_only({"zzzzz": 1}).hint)


def test_the_python_spelling_of_a_key_is_unknown() -> None:
    fault = _only({"execution": {"strategy": "debounce", "max_wait": 5}})
    assert (fault.code, fault.hint) == ("unknown-key", "did you mean 'maxWait'?")


@pytest.mark.parametrize(
    ("execution", "message"),
    [
        ({"strategy": "counts"}, "must be 'count' or 'debounce', not \"counts\""),
        ({}, "the key 'strategy' is missing"),
    ],
)
def test_a_fault_of_a_tag_stands_at_the_tag(execution: Any, message: str) -> None:
    fault = _only({"execution": execution})
    assert (fault.pointer, fault.message) == ("/execution/strategy", message)


def test_null_is_not_absence_unless_the_model_says_so() -> None:
    assert _only({"name": None}).hint == "leave the key out instead"
    assert _check({"execution": {"strategy": "debounce", "maxWait": None}}) == []


def test_a_union_says_all_that_would_be_right_once() -> None:
    assert _only({"files": 5}).message == "must be a string or a list of strings, not 5"
    assert _only({"files": ["a", 5]}).pointer == "/files/1"


def test_a_key_named_like_a_branch_does_not_confuse_the_place() -> None:
    faults = _check({"execution": {"strategy": "count", "threshold": 0, "count": {"threshold": 1}}})
    assert [f.pointer for f in faults] == ["/execution/threshold", "/execution/count"]


def test_all_faults_of_a_file_come_at_once_with_their_lines() -> None:
    text = '{\n"name": "",\n"ratio": 3,\n"nmae": 1,\n"env": {"A": 1},\n}'
    diagnostics = Diagnostics()
    assert validate(Root, Document.parse(text, "f.json"), diagnostics) is None
    found = {(d.code, d.line, d.column) for d in diagnostics}
    assert found == {
        ("json-syntax", 5, 16),
        ("too-short", 2, 9),
        ("out-of-range", 3, 10),
        ("unknown-key", 4, 1),
        ("wrong-type", 5, 14),
    }


def test_a_document_that_cannot_be_read_gives_its_own_fault_only() -> None:
    diagnostics = Diagnostics()
    assert validate(Root, Document.parse("{", "f"), diagnostics) is None
    assert [d.code for d in diagnostics] == ["json-syntax"]


def test_advice_goes_before_a_guess() -> None:
    diagnostics = Diagnostics()
    validate(Root, Document.from_value({"nmae": 1}), diagnostics, advise=lambda place, key: f"{key} at {place}")
    assert [d.hint for d in diagnostics] == ["nmae at ()"]


def test_a_part_of_a_document_is_validated_at_its_pointer() -> None:
    document = Document.parse('{"a": [\n{"name": 5}]}', "f")
    diagnostics = Diagnostics()
    validate(Root, document, diagnostics, "/a/0")
    assert [(d.pointer, d.line) for d in diagnostics] == [("/a/0/name", 2)]


def test_a_rule_of_its_own_reports_with_the_line() -> None:
    diagnostics = Diagnostics()
    add_fault(diagnostics, Document.parse('{\n"a": 1}', "f"), "/a", "my-rule", "no", hint="do", severity="warning")
    assert diagnostics.items == [Diagnostic("f", "/a", "my-rule", "no", "do", "warning", 2, 6)]


class Base(ConfigModel):
    """Holds a field that others inherit."""

    path: str
    """Said once,
    over two lines."""
    plain: int = 0


class Inheriting(Base):
    """Adds one."""

    own: int | None = None
    """Its own.

    Not for those who write files.
    """


def test_the_string_under_a_field_describes_it_wherever_it_is_declared() -> None:
    properties = Inheriting.model_json_schema()["properties"]
    assert properties["path"]["description"] == "Said once,\nover two lines."
    assert "description" not in properties["plain"]
    assert properties["own"] == {"description": "Its own.", "type": "integer"}
