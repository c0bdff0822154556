"""Whether what a sentinel reported is what a check says it should be."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hankwatch.bench.check.diff import quoted, shown
from hankwatch.bench.check.model import Assertion
from hankwatch.bench.check.rules import given
from hankwatch.bench.check.seen import Seen
from hankwatch.config.source import Document
from hankwatch.core.errors import SchemaFault
from hankwatch.matching.conditions import MISSING, Condition, Test, compile_test
from hankwatch.sandbox.sandbox import Sandbox

_CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
_SAYS = {
    "contains": "should contain {}",
    "notContains": "should not contain {}",
    "matches": "should match {}",
    "notMatches": "should not match {}",
    "equals": "should be {}",
    "notEquals": "should not be {}",
    "in": "should be one of {}",
    "notIn": "should be none of {}",
    "greaterThan": "should be above {}",
    "greaterThanOrEqual": "should be {} or more",
    "lessThan": "should be below {}",
    "lessThanOrEqual": "should be {} or less",
}
_UNWANTED = {"notContains": "contains", "notMatches": "matches"}


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why an assertion does not hold."""

    key: str
    """Of the assertion's keys the one that does not hold; empty when there was nothing to ask."""
    message: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is asked about."""

    name: str
    """As people call it: ``the report``, ``entry 2``, ``/verdict of entry 2``."""
    value: Any
    around: Any = MISSING
    """The entry that the pointer leads into."""


@dataclass(slots=True)
class Assessor:
    """Holds reports against assertions; schemas are applied in the sandbox."""

    sandbox: Sandbox
    folder: Path
    """What paths in assertions are relative to."""
    _late: list[str] = field(default_factory=list)

    async def shortfall(self, assertion: Assertion, seen: Seen) -> Shortfall | None:
        """Why ``assertion``, but for its ``equalsFile``, does not hold; None when it does."""
        tests = {key: value for key, value in given(assertion).items() if key != "equalsFile"}
        if not tests:
            return None
        if assertion.entry is None and assertion.pointer is None and "schema" not in tests:
            text = seen.report.decode("utf-8", "replace")
            return await self._failing(tests, _Subject("the report", text))
        count = len(seen.entries)
        if count == 0 or (isinstance(assertion.entry, int) and assertion.entry > count):
            wanted = f"entry {assertion.entry}" if isinstance(assertion.entry, int) else "an entry"
            return Shortfall("entry", f"{wanted} is asked for; the report has {_entries(count)}")
        nearest = None
        for subject in _subjects(assertion, seen.entries):
            failing = await self._failing(tests, subject)
            if (failing is None) is (assertion.entry == "any"):
                return failing
            nearest = failing
        if nearest is None or assertion.entry != "any":
            return None
        return Shortfall(
            "entry", f"none of {_entries(count)} is as expected; the last: {nearest.message}", nearest.details
        )

    async def _failing(self, tests: dict[str, Any], subject: _Subject) -> Shortfall | None:
        for key, wanted in tests.items():
            found = (
                await self._against_schema(wanted, subject) if key == "schema" else self._against(key, wanted, subject)
            )
            if found is not None:
                return found
        return None

    def _against(self, key: str, wanted: Any, subject: _Subject) -> Shortfall | None:
        self._late.clear()
        if _test(key, wanted, lambda: self._late.append(key))(subject.value) and not self._late:
            return None
        if self._late:
            return Shortfall(key, f"{subject.name}: the pattern {_json(wanted)} takes too long to search it")
        if key == "exists":
            return Shortfall(key, f"{subject.name} {'is missing' if wanted else 'should be missing'}", _found(subject))
        message = f"{subject.name} {_SAYS[key].format(_json(wanted))}"
        if key in _UNWANTED and isinstance(subject.value, str):
            return Shortfall(key, message, _where(_UNWANTED[key], wanted, subject.value))
        return Shortfall(key, message, _found(subject))

    async def _against_schema(self, schema: Any, subject: _Subject) -> Shortfall | None:
        if subject.value is MISSING:
            return Shortfall("schema", f"{subject.name} is missing", _found(subject))
        read = Document.load(self.folder / schema).value if isinstance(schema, str) else schema
        try:
            wrong = await self.sandbox.validate(read, subject.value)
        except SchemaFault as fault:
            return Shortfall("schema", f"the schema cannot be used: {fault}")
        if not wrong:
            return None
        return Shortfall("schema", f"{subject.name} does not fit the schema", (*map(shown, wrong), *_found(subject)))


def _test(key: str, wanted: Any, on_overrun: Callable[[], None]) -> Test:
    condition = _CONDITION.validate_python({"path": "it", "operator": key, "value": wanted})
    return compile_test(condition, on_overrun)


def _subjects(assertion: Assertion, entries: Sequence[Any]) -> Iterator[_Subject]:
    """The entries asked about, or what the pointer leads to in them."""
    match assertion.entry:
        case int(number):
            chosen = [(number, entries[number - 1])]
        case "last":
            chosen = [(len(entries), entries[-1])]
        case _:
            chosen = list(enumerate(entries, 1))
    for number, entry in chosen:
        if assertion.pointer is None:
            yield _Subject(f"entry {number}", entry)
        else:
            yield _Subject(
                f"{shown(assertion.pointer) or 'all'} of entry {number}", _at(entry, assertion.pointer), entry
            )


def _at(entry: Any, pointer: str) -> Any:
    try:
        return Document(entry, "", readable=True).at(pointer)
    except KeyError:
        return MISSING


def _found(subject: _Subject) -> tuple[str, ...]:
    """The value there, or what is there instead."""
    value = subject.value
    if isinstance(value, str):
        return quoted(value)
    if value is not MISSING:
        hint = " (a pointer leads into it)" if isinstance(value, dict) and subject.around is MISSING else ""
        return (f"it is {_json(value)}{hint}",)
    if isinstance(subject.around, dict):
        return (f"the entry has the keys {', '.join(map(_json, subject.around))}",)
    return (f"the entry is {_json(subject.around)}",)


def _where(key: str, unwanted: str, text: str) -> tuple[str, ...]:
    """The lines with what should not be there; all, when it is in none alone."""
    found = _test(key, unwanted, lambda: None)
    return quoted("\n".join(line for line in text.split("\n") if found(line)) or text)


def _json(value: Any) -> str:
    return shown(json.dumps(value, ensure_ascii=False))


def _entries(count: int) -> str:
    return {0: "no entries", 1: "1 entry"}.get(count, f"{count} entries")
