"""The event envelope, its instants and ids, and how a type is routed (spec events)."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from hankwatch.core.clock import LAST_STAMP_MS

_FIRST_STAMP_MS = -30_610_224_000_000
"""1000-01-01T00:00:00.000Z, the first instant with a year of four digits."""

EventData = dict[str, Any]
"""An event's payload as JSON: dumped once from the validated model, shared by all listeners, never mutated."""


class Routing(StrEnum):
    """Which triggers of sentinels and watches an event type can reach."""

    OPEN = "open"
    """By name and by ``"*"``."""
    NAMED = "named"
    """Only where a trigger names the type."""
    NEVER = "never"
    """Not at all."""


@dataclass(slots=True, eq=False)
class Event:
    """One event as written. Treat as frozen: only the journal sets ``cursor`` and ``size_bytes``, once.

    Not a frozen dataclass because one is built per emitted line and frozen ones cost three times as much.
    """

    id: str
    """UUIDv7 string; foreign ids are kept as they are."""
    timestamp: str
    """UTC, ISO-8601, milliseconds, ``Z``."""
    type: str
    data: EventData
    at_ms: int
    """``timestamp`` as epoch milliseconds."""
    cursor: int = 0
    """Byte offset where its line ends in the journal; 0 while not written."""
    size_bytes: int = 0
    """Length of its journal line with the newline; 0 while not written."""

    def envelope(self) -> dict[str, Any]:
        """The four keys of a journal line, in their order."""
        return {"id": self.id, "timestamp": self.timestamp, "type": self.type, "data": self.data}


def format_stamp(at_ms: int) -> str:
    """Epoch milliseconds as ``2026-11-30T17:00:32.123Z``; beyond the years 1000 to 9999 their nearest end."""
    seconds, ms = divmod(min(max(at_ms, _FIRST_STAMP_MS), LAST_STAMP_MS), 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


class IdSource:
    """UUIDv7 ids: increasing within a source even inside one millisecond.

    With a ``seed`` the same sequence of instants gives the same ids (``--deterministic``).
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - ids are unique, not secret
        self._last = 0

    def next(self, at_ms: int) -> str:
        """A new id for an event stamped ``at_ms``."""
        fresh = (max(at_ms, 0) & (1 << 48) - 1) << 74 | self._random.getrandbits(74)
        if fresh <= self._last:
            fresh = self._last + 1 + self._random.getrandbits(32)
        self._last = fresh
        ms, rest = fresh >> 74, fresh & (1 << 74) - 1
        value = ms << 80 | 0x7 << 76 | rest >> 62 << 64 | 0b10 << 62 | rest & (1 << 62) - 1
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
