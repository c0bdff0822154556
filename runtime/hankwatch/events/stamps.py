"""Instants as other programs write them, read as epoch milliseconds (spec events; the host's zone never counts)."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from hankwatch.core.clock import EARLIEST_MS, LAST_STAMP_MS, LATEST_MS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
"""No number below means an instant."""
_SECONDS_BELOW, _MILLISECONDS_BELOW, _MICROSECONDS_BELOW = 10**11, 10**14, 10**17
"""An epoch number's size tells its unit: these separate them for the years 1973 to 5138."""

_CANONICAL = re.compile(r"[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:[0-5]\d\.\d{3}Z", re.ASCII)
_EPOCH_TEXT = re.compile(r"-?\d{9,20}(?:\.\d{1,20})?", re.ASCII)
_LEAP_SECOND = re.compile(r"(?<=:\d\d:)60(?!\d)", re.ASCII)
_ZONE = re.compile(r"\s*(?:UTC|GMT|Z)$|\s+(?=[+-]\d\d:?(?:\d\d)?$)", re.ASCII)


def parse_stamp(value: Any) -> int | None:
    """Epoch milliseconds of a stamp, or None when it cannot be read; never raises.

    Reads ISO-8601 with any offset, without one (then UTC), with a leap second (the second after it) or
    nanoseconds (cut), and epoch seconds, milliseconds, microseconds or nanoseconds as number or text.
    What lies before ``EARLIEST_MS`` or after ``LATEST_MS`` is read as that instant.
    """
    if is_canonical(value):
        at_ms = _from_text(value)
    elif isinstance(value, str):
        text = value.strip()
        if _EPOCH_TEXT.fullmatch(text):
            at_ms = _from_number(float(text) if "." in text else int(text))
        else:
            at_ms = _from_iso(text)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        at_ms = _from_number(value)
    else:
        return None
    return None if at_ms is None else min(max(at_ms, EARLIEST_MS), LATEST_MS)


def is_canonical(value: Any) -> bool:
    """Whether a readable stamp is spelled as this runtime writes it."""
    return isinstance(value, str) and _CANONICAL.fullmatch(value) is not None


def _from_number(number: float) -> int | None:
    if isinstance(number, float) and not math.isfinite(number):
        return None
    size = abs(number)
    if size < _SECONDS_BELOW:
        at_ms = round(number * 1000)
    elif size < _MILLISECONDS_BELOW:
        at_ms = int(number)
    else:
        at_ms = int(number // (1000 if size < _MICROSECONDS_BELOW else 1_000_000))
    return at_ms if _FIRST_MS <= at_ms <= LAST_STAMP_MS else None


def _from_iso(text: str) -> int | None:
    text, leaps = _LEAP_SECOND.subn("59", text.upper(), count=1)
    at_ms = _from_text(_ZONE.sub(lambda zone: "" if zone[0].isspace() else "+00:00", text))
    return at_ms if at_ms is None else at_ms + 1000 * leaps


def _from_text(text: str) -> int | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - _EPOCH) // _MILLISECOND
