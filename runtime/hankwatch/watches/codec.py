"""Watches, evaluations and deliveries as texts of a row, and what makes two watches the same."""

import hashlib
import re
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from hankwatch.core.errors import BadLine
from hankwatch.watches.specs import VerifierSpec
from hankwatch.watches.watch import Kind, Watch

_WATCH: Final = TypeAdapter(Watch)
_SPEC: Final[TypeAdapter[VerifierSpec]] = TypeAdapter(VerifierSpec)
_LONGEST_INTERVAL_S: Final = 366 * 86_400
_SLUG_CHARS: Final = 24
_CONDITION_IS_PART: Final = frozenset({"event", "check"})
"""Verifier types that two conditions may share and mean different things by."""


def encode(watch: Watch) -> str:
    """The whole record as JSON."""
    return _WATCH.dump_json(watch, by_alias=True).decode()


def decode(text: str) -> Watch:
    """The record of a row.

    Raises:
        BadLine: it is none.
    """
    try:
        watch = _WATCH.validate_json(text)
    except ValidationError as error:
        raise BadLine(f"the record of a watch: {error.errors(include_url=False)[0]['msg']}") from error
    if not 0 <= watch.interval_s <= _LONGEST_INTERVAL_S:  # nor NaN
        raise BadLine(f"the record of a watch: {watch.interval_s} s is no interval")
    return watch


def canonical(value: Any) -> bytes:
    """The JSON of a value with its keys sorted; equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)


def digest(value: Any) -> str:
    """16 hex digits of a JSON value."""
    return hashlib.blake2b(canonical(value), digest_size=8).hexdigest()


def spec_json(spec: VerifierSpec) -> dict[str, Any]:
    """A verifier as it would be written."""
    dumped: dict[str, Any] = _SPEC.dump_python(spec, mode="json", by_alias=True, exclude_defaults=True)
    return dumped


def identity(
    *,
    kind: Kind,
    tenant: str,
    owner: str,
    session: str | None,
    home: str | None,
    spec: VerifierSpec,
    condition: str,
) -> str:
    """Equal for watches of one owner that wait for the same (spec watches 5); paths and sessions are those of a home."""
    parts: list[Any] = [kind.value, tenant, owner, session, home, spec_json(spec)]
    if spec.type in _CONDITION_IS_PART:
        parts.append(condition)
    return digest(parts)


def watch_id(condition: str, unique: str) -> str:
    """A readable id: the condition's first words and six hex digits of what makes it its own."""
    slug = re.sub(r"[^a-z0-9]+", "-", condition.lower()).strip("-")[:_SLUG_CHARS].strip("-") or "watch"
    return f"{slug}-{hashlib.blake2b(unique.encode(), digest_size=3).hexdigest()}"
