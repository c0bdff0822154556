"""JSON Schema 2020-12, as answers are held to it (spec sentinels 7).

Runs in the worker, whose limits are the bound for time and memory. A ``pattern`` has JavaScript's meaning and runs
in linear time where it can. Of the formats those in ``FORMATS`` are asserted; others only describe.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from hankwatch.core.errors import SchemaFault
from hankwatch.matching.regexes import RegexInvalid, compile_js

MAX_ERRORS = 20
"""Errors told of one value."""

_MESSAGE_CHARS = 300
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_UNICODE_ONLY = re.compile(r"(?<!\\)(?:\\\\)*\\[pPu]\{")  # without the flag, JavaScript reads them as letters
_SPELLED = {"$ref": str, "$dynamicRef": str, "pattern": str, "patternProperties": dict}
_PLAIN_VALUES = ("const", "enum", "default", "examples")  # what looks like a schema in there is none


def check(schema: dict[str, Any]) -> None:
    """Hold ``schema`` to JSON Schema itself.

    Raises:
        SchemaFault: it is no 2020-12 schema, a reference leaves the document or leads nowhere, a pattern is no
            regex.
    """
    dialect = schema.get("$schema", _DIALECT)
    if str(dialect).removesuffix("#") != _DIALECT:
        raise SchemaFault(f"/$schema: {dialect!r} is not supported: write {_DIALECT}")
    try:
        _Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise SchemaFault(_told(error)) from error
    resolver = Registry().resolver_with_root(Resource.from_contents(schema, default_specification=DRAFT202012))
    for pointer, word, value in _keywords(schema, ""):
        try:
            if word == "pattern":
                if _UNICODE_ONLY.search(value):
                    raise SchemaFault(f"{pointer}: \\p{{…}} and \\u{{…}} are not supported")
                compile_js(value)
            elif word == "patternProperties":
                for pattern in value:
                    re.compile(pattern)
            elif not value.startswith("#"):
                raise SchemaFault(f"{pointer}: {value!r} leaves the document")
            else:
                resolver.lookup(value)
        except (RegexInvalid, re.error) as error:
            raise SchemaFault(f"{pointer}: is no regular expression: {error}") from error
        except Unresolvable as error:
            raise SchemaFault(f"{pointer}: {value!r} leads nowhere") from error


def validate(schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with ``value``, each as ``pointer: message``, at most ``MAX_ERRORS``; empty when it is valid.

    Of a failed choice the branch that came nearest is told. Raises ``SchemaFault`` as ``check``.
    """
    check(schema)
    validator = _Validator(schema, format_checker=FORMATS, registry=Registry())
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


_Validator = extend(Draft202012Validator, {"pattern": _pattern})


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
