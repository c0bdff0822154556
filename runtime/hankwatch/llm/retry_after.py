"""How long a provider asks to be left alone, in whichever form it says so (spec sentinels 7)."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_SPAN: Final = r"\d{1,9}(?:\.\d{1,9})?\s?(?:ms|milliseconds?|hours?|h|minutes?|mins?|m|seconds?|secs?|s)?(?![a-z])"
_ASKED: Final = re.compile(
    # "try again in 634ms", "retry after 1m26.4s", Google's "retryDelay": "34s"
    rf"(?:(?:try again|retry) (?:in|after)|retrydelay\"?\s?:\s?\"?)\s?((?:{_SPAN}\s?){{1,3}})",
    re.IGNORECASE,
)
_PART: Final = re.compile(r"([\d.]+)\s?([a-z]*)", re.IGNORECASE)
_READ_CHARS: Final = 4_000
"""An error page can be long; what we look for stands near its beginning."""


def retry_after_s(headers: Mapping[str, str], text: str, *, now: datetime) -> float | None:
    """Seconds that the provider asks for, >= 0; None when it does not say.

    The first that can be read of: header ``retry-after-ms``; header ``Retry-After`` as seconds or as an HTTP
    date (against ``now``, aware); a phrase like "try again in 634ms" or Google's ``retryDelay`` in ``text``.

    Args:
        headers: Any spelling of the names will do.
        text: What the error says.
        now: The wall clock, for a date.
    """
    named = {name.lower(): value for name, value in headers.items()}
    if (milliseconds := _number(named.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    stated = named.get("retry-after")
    for seconds in (_number(stated), _until(stated, now), _asked(text)):
        if seconds is not None:
            return seconds
    return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str | None, now: datetime) -> float | None:
    try:
        until = parsedate_to_datetime(date or "")
    except (ValueError, OverflowError):
        return None
    # A date without a zone is one in UTC, as HTTP dates are.
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def _asked(text: str) -> float | None:
    found = _ASKED.search(text[:_READ_CHARS])
    if found is None:
        return None
    return sum(float(number) * _unit_s(unit.lower()) for number, unit in _PART.findall(found[1]))


def _unit_s(unit: str) -> float:
    if unit.startswith(("ms", "milli")):
        return 0.001
    return {"h": 3600.0, "m": 60.0}.get(unit[:1], 1.0)
