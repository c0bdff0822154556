"""JSON Schema 2020-12 and draft-07, as answers are held to it (spec sentinels 7).

Runs in the worker, whose limits are the bound for time and memory. Patterns have JavaScript's meaning and run
in linear time where they can. Of the formats those in ``FORMATS`` are asserted; others only describe.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker, ValidationError
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7, DRAFT202012

from hankwatch.core.errors import SchemaFault
from hankwatch.matching.regexes import RegexInvalid, compile_js

MAX_ERRORS = 20
"""Errors told of one value."""

_MESSAGE_CHARS = 300
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DRAFT_07 = "http://json-schema.org/draft-07/schema"
_UNICODE_ONLY = re.compile(r"(?<!\\)(?:\\\\)*\\[pPu]\{")  # without the flag, JavaScript reads them as letters
_SPELLED: Mapping[str, type | tuple[type, ...]] = {
    "$ref": str,
    "$dynamicRef": str,
    "pattern": str,
    "patternProperties": dict,
    "unevaluatedProperties": (dict, bool),
}
_PLAIN_VALUES = ("const", "enum", "default", "examples")  # what looks like a schema in there is none
_REFERENCES = ("$ref", "$dynamicRef")
_OF_THE_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""What stands below these is held against the same value as what stands around them."""


def check(schema: dict[str, Any]) -> None:
    """Hold ``schema`` to JSON Schema itself.

    Raises:
        SchemaFault: it is no schema of its draft, a reference leaves the document, leads nowhere or comes back to
            itself without a step into the value, a pattern is no regex.
    """
    draft = _draft(schema)
    try:
        draft.validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise SchemaFault(_told(error)) from error
    resolver = Registry().resolver_with_root(Resource.from_contents(schema, default_specification=draft.rules))
    sound: set[int] = set()
    words = set()
    for pointer, word, value in _keywords(schema, ""):
        words.add(word)
        if word == "pattern":
            _check_pattern(value, pointer)
        elif word == "patternProperties":
            for pattern in value:
                _check_pattern(pattern, pointer)
        elif word in _REFERENCES:
            if not value.startswith("#"):
                raise SchemaFault(f"{pointer}: {value!r} leaves the document")
            try:
                endless = _is_endless({word: value}, resolver, (), sound)
            except Unresolvable as error:
                raise SchemaFault(f"{pointer}: {value!r} leads nowhere") from error
            if endless:
                raise SchemaFault(f"{pointer}: {value!r} refers to itself without end")
    if words >= {"patternProperties", "unevaluatedProperties"}:
        # The validator's own search for what was evaluated knows patterns of Python alone.
        raise SchemaFault(
            "unevaluatedProperties does not work together with patternProperties: write additionalProperties"
        )


def validate(schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with ``value``, each as ``pointer: message``, at most ``MAX_ERRORS``; empty when it is valid.

    Of a failed choice the branch that came nearest is told. Raises ``SchemaFault`` as ``check``.
    """
    check(schema)
    validator = _draft(schema).validator(schema, format_checker=FORMATS, registry=Registry())
    told: list[str] = []
    for error in validator.iter_errors(value):
        told.append(_told(best_match([error])))
        if len(told) == MAX_ERRORS:
            break
    return told


def explain(error: Exception) -> tuple[str, int | None]:
    """What a failure of ``check`` or ``validate`` says to an author; schemas have no lines here."""
    if isinstance(error, SchemaFault):
        return error.reason, None
    if isinstance(error, RecursionError):
        return "is nested or refers to itself without end", None
    return f"{type(error).__name__}: {error}", None


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not compile_js(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], value: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for key in _matching(pattern, value):
                yield from validator.descend(value[key], schema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    known = {*schema.get("properties", ())}
    for pattern in schema.get("patternProperties", ()):
        known.update(_matching(pattern, value))
    extra = [key for key in value if key not in known]
    if isinstance(allowed, dict):
        for key in extra:
            yield from validator.descend(value[key], allowed, path=key)
    elif not allowed and extra:
        told = ", ".join(map(repr, extra))
        yield ValidationError(
            f"Additional properties are not allowed ({told} {'was' if extra[1:] == [] else 'were'} unexpected)"
        )


def _matching(pattern: str, value: dict[str, Any]) -> list[str]:
    compiled = compile_js(pattern)
    return [key for key in value if compiled.search(key)]


def _multiple_of(validator: Any, factor: float, value: Any, _: Any) -> Iterator[ValidationError]:
    # As decimals are written: the nearest binary fractions of 19.99 and 0.01 are no multiples.
    if validator.is_type(value, "number") and (Fraction(str(value)) / Fraction(str(factor))).denominator != 1:
        yield ValidationError(f"{value!r} is not a multiple of {factor}")


_KEYWORDS = {
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
}


@dataclass(frozen=True, slots=True)
class _Draft:
    validator: Any
    rules: Any
    """How references are read."""


_DRAFTS = {
    _DIALECT: _Draft(extend(Draft202012Validator, _KEYWORDS), DRAFT202012),
    _DRAFT_07: _Draft(extend(Draft7Validator, _KEYWORDS), DRAFT7),
}


def _draft(schema: dict[str, Any]) -> _Draft:
    dialect = schema.get("$schema", _DIALECT)
    draft = _DRAFTS.get(str(dialect).removesuffix("#"))
    if draft is None:
        raise SchemaFault(f"/$schema: {dialect!r} is not supported: write {' or '.join(_DRAFTS)}")
    return draft


def _check_pattern(pattern: str, pointer: str) -> None:
    if _UNICODE_ONLY.search(pattern):
        raise SchemaFault(f"{pointer}: \\p{{…}} and \\u{{…}} are not supported")
    try:
        compile_js(pattern)
    except RegexInvalid as error:
        raise SchemaFault(f"{pointer}: is no regular expression: {error}") from error


def _is_endless(schema: Any, resolver: Any, around: tuple[int, ...], sound: set[int]) -> bool:
    """Whether holding a value against ``schema`` comes back to it with the same value.

    Args:
        schema: Any part of the document.
        resolver: What its references are looked up with.
        around: The parts that led here, by identity.
        sound: The parts that are known to come to an end; those found are added.

    Raises:
        Unresolvable: a reference leads nowhere.
    """
    if not isinstance(schema, dict) or id(schema) in sound:
        return False
    if id(schema) in around:
        return True
    inside = (*around, id(schema))
    for word in _REFERENCES:
        if isinstance(schema.get(word), str):
            found = resolver.lookup(schema[word])
            if _is_endless(found.contents, found.resolver, inside, sound):
                return True
    for word in _OF_THE_SAME_VALUE:
        part = schema.get(word)
        branches = part if isinstance(part, list) else [part]
        if word in {"dependentSchemas", "dependencies"} and isinstance(part, dict):
            branches = [*part.values()]
        if any(_is_endless(branch, resolver, inside, sound) for branch in branches):
            return True
    sound.add(id(schema))
    return False


def _keywords(schema: Any, pointer: str) -> Iterator[tuple[str, str, Any]]:
    """Every reference and pattern of ``schema``, with its pointer and keyword."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from _keywords(item, f"{pointer}/{number}")
    elif isinstance(schema, Mapping):
        for word, value in schema.items():
            at = f"{pointer}/{_escaped(word)}"
            kind = _SPELLED.get(word)
            if kind is not None and isinstance(value, kind):  # else it names a property
                yield at, word, value
            if word not in _PLAIN_VALUES:
                yield from _keywords(value, at)


def _told(error: Any) -> str:
    pointer = "".join(f"/{_escaped(str(step))}" for step in error.absolute_path)
    message = error.message
    if len(message) > _MESSAGE_CHARS:  # the value stands first, what it should be last
        half = _MESSAGE_CHARS // 2
        message = f"{message[:half]} … {message[-half:]}"
    return f"{pointer or '(root)'}: {message}"


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


_EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)+")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _is_date_time(text: str) -> bool:
    # The standard library reads seconds in six digits at most, and no leap second.
    plain = re.sub(r"\.\d+", "", text.upper()).replace(":60", ":59")
    return _DATE_TIME.fullmatch(text) is not None and datetime.fromisoformat(plain) is not None


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and time.fromisoformat(re.sub(r"\.\d+", "", text.upper())) is not None


def _is_uri(text: str) -> bool:
    return re.search(r"\s", text) is None and bool(urlsplit(text).scheme)


_READERS: Mapping[str, Callable[[str], object]] = {
    "date": lambda text: _DATE.fullmatch(text) is not None and date.fromisoformat(text) is not None,
    "date-time": _is_date_time,
    "email": _EMAIL.fullmatch,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "time": _is_time,
    "uri": _is_uri,
    "uuid": lambda text: _UUID.fullmatch(text) is not None and UUID(text) is not None,
}


def _checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, reads in _READERS.items():
        checker.checks(name, raises=ValueError)(
            lambda value, reads=reads: not isinstance(value, str) or bool(reads(value))
        )
    return checker


FORMATS = _checker()
"""Formats a string is held to."""
