"""The rules between the fields of a check that its model cannot say."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hankwatch.bench.check.model import Assertion, Check, ExpectedFire, Span
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.refs import check_ref, resolve_ref
from hankwatch.config.scanner import escape
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.core.errors import PathRefused
from hankwatch.events.codec import parse_stamp
from hankwatch.matching.regexes import RegexInvalid, compile_js

TESTS = (
    "contains",
    "notContains",
    "matches",
    "notMatches",
    "equals",
    "notEquals",
    "in",
    "notIn",
    "greaterThan",
    "greaterThanOrEqual",
    "lessThan",
    "lessThanOrEqual",
    "exists",
)
"""The keys of an assertion that are operators of conditions (spec sentinels 2), in the order they are asked."""
_FIELDS = {(field.alias or name): name for name, field in Assertion.model_fields.items()}
_Fault = tuple[str, str, str, str | None]
"""Pointer, code, message, hint."""


def given(assertion: Assertion) -> dict[str, Any]:
    """What an assertion says, by key, in the order of ``TESTS``; ``schema`` and ``equalsFile`` last."""
    said = {key: getattr(assertion, name) for key, name in _FIELDS.items() if name in assertion.model_fields_set}
    return {key: said[key] for key in (*TESTS, "schema", "equalsFile") if key in said}


def check_rules(config: Check, document: Document, folder: Path, faults: Diagnostics) -> None:
    """Add every rule that a check breaks to ``faults``, at its place."""
    for pointer, code, message, hint in _broken(config, folder):
        add_fault(faults, document, pointer, code, message, hint=hint)


def _broken(config: Check, folder: Path) -> Iterator[_Fault]:
    if config.sentinel is not None and config.hank is not None:
        hint = "leave one of them out; a hank brings its own sentinels"
        yield "/sentinel", "conflicting-keys", "a check has a sentinel or a hank, not both", hint
    for key, counts in (("fires", config.expect.fires), ("errors", config.expect.errors)):
        for name, wanted in counts.items():
            pointer = f"/expect/{key}/{escape(name)}"
            if isinstance(wanted, Span):
                yield from _of_span(wanted, pointer)
            elif key == "fires" and isinstance(wanted, list):
                yield from _of_fires(wanted, pointer)
    for name, of_sentinel in config.expect.reports.items():
        for number, assertion in enumerate(of_sentinel):
            yield from _of_assertion(assertion, f"/expect/reports/{escape(name)}/{number}", folder)
    if config.expect.journal is not None:
        yield from _of_golden(config.expect.journal, "/expect/journal", folder)


def _of_span(span: Span, pointer: str) -> Iterator[_Fault]:
    if span.min is None and span.max is None:
        yield pointer, "missing-key", "neither min nor max is given", "give one of them, or write a number"
    elif span.min is not None and span.max is not None and span.min > span.max:
        yield f"{pointer}/min", "out-of-range", f"min {span.min} is above max {span.max}", None


def _of_fires(fires: list[Any], pointer: str) -> Iterator[_Fault]:
    for number, fire in enumerate(fires):
        if isinstance(fire, ExpectedFire) and fire.at is not None and parse_stamp(fire.at) is None:
            message = f"{fire.at!r} is no instant"
            yield f"{pointer}/{number}/at", "bad-format", message, "write it like 2026-11-30T15:18:35.165Z"


def _of_assertion(assertion: Assertion, pointer: str, folder: Path) -> Iterator[_Fault]:
    said = given(assertion)
    if not said:
        hint = f"add one of {', '.join((*TESTS, 'schema', 'equalsFile'))}"
        yield pointer, "missing-key", "an assertion that asserts nothing", hint
    for key in ("matches", "notMatches"):
        if key in said:
            try:
                compile_js(said[key])
            except RegexInvalid as error:
                yield f"{pointer}/{key}", "invalid-regex", f"is no regular expression: {error}", None
    if "exists" in said and assertion.pointer is None:
        yield f"{pointer}/exists", "missing-key", "exists asks for something at a pointer", "add the key 'pointer'"
    if "equalsFile" in said:
        yield from _of_golden(said["equalsFile"], f"{pointer}/equalsFile", folder)
        if assertion.entry is not None or assertion.pointer is not None:
            hint = "write the other keys as an assertion of their own"
            yield f"{pointer}/equalsFile", "conflicting-keys", "equalsFile is about the whole report", hint
    if isinstance(said.get("schema"), str):
        yield from _of_schema(said["schema"], f"{pointer}/schema", folder)


def _of_golden(ref: str, pointer: str, folder: Path) -> Iterator[_Fault]:
    if (reason := _why_not_written(ref, folder.absolute())) is not None:
        yield pointer, "path-refused", f"{ref!r} {reason}", None


def _why_not_written(ref: str, folder: Path) -> str | None:
    """``--update`` writes there, so it must not lead out of the check's folder, by dots or by a link."""
    if check_ref(ref) is None and os.path.normpath(ref).split("/")[0] == "..":
        return "leaves the check's folder, where alone --update writes"
    try:
        resolve_ref(ref, base=folder, root=folder)
    except PathRefused as refused:
        return refused.reason
    return None


def _of_schema(ref: str, pointer: str, folder: Path) -> Iterator[_Fault]:
    if (reason := check_ref(ref)) is not None:
        yield pointer, "path-refused", f"{ref!r} {reason}", "an inline schema is an object"
        return
    document = Document.load(folder / ref)
    for fault in document.faults[:1]:
        yield pointer, "file-unreadable", f"{ref!r}: {fault.message}", fault.hint
    if not document.faults and not isinstance(document.value, dict):
        yield pointer, "schema-invalid", f"{ref!r} holds no JSON object", "a JSON Schema is an object"
