"""Reading foreign JSON lines without trusting them: nothing here raises on any input."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hankwatch.agents.signals import Junk, ModelUse, Tokens
from hankwatch.core.errors import BadLine
from hankwatch.core.intake import parse_json
from hankwatch.events.stamps import parse_stamp

_EMPTY: Mapping[str, Any] = {}
_BOM = b"\xef\xbb\xbf"
_STAMPS = (("timestamp",), ("ts",), ("updatedAt",), ("message", "timestamp"))
"""Where the programs write when a line was written."""


class Record:
    """A JSON object of unknown shape; every reader answers with an empty value for what does not fit."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw: Mapping[str, Any] = raw if isinstance(raw, dict) else _EMPTY
        """The object itself; empty when it was something else."""

    def __bool__(self) -> bool:
        return bool(self.raw)

    def get(self, *path: str) -> Any:
        """The value at nested keys, or None."""
        value: Any = self.raw
        for key in path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def text(self, *path: str) -> str:
        """The string there, or ``""``."""
        value = self.get(*path)
        return value if isinstance(value, str) else ""

    def count(self, *path: str) -> int:
        """The number there as a whole one, or 0; whether a count can be that, ``agents.limits`` tells."""
        value = self.get(*path)
        return int(value) if _is_number(value) else 0

    def number(self, *path: str) -> float | None:
        """The number there, or None."""
        value = self.get(*path)
        return float(value) if _is_number(value) else None

    def flag(self, *path: str) -> bool:
        """True only where ``true`` stands."""
        return self.get(*path) is True

    def child(self, *path: str) -> "Record":
        """The object there, or an empty one."""
        return Record(self.get(*path))

    def children(self, *path: str) -> Iterator["Record"]:
        """The objects of the list there."""
        value = self.get(*path)
        return (Record(item) for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())

    def stamp_ms(self) -> int | None:
        """When the line says it was written, in epoch milliseconds; None when it does not."""
        for path in _STAMPS:
            if (value := self.get(*path)) is not None:
                return parse_stamp(value)
        return None


def read_record(line: bytes) -> Record | Junk:
    """One line as a clean object (spec events, intake), or why it is none."""
    try:
        value, _ = parse_json(line.removeprefix(_BOM).strip())
    except BadLine as error:
        return Junk(line, error.reason)
    return Record(value) if isinstance(value, dict) else Junk(line, "not a JSON object")


def joined_text(content: Any) -> str:
    """A content value as text: a string as it is, a list's text parts one per line (reference 3.4)."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else Record(part).text("text") for part in content)
    if isinstance(content, dict):
        return json.dumps(content, indent=2, ensure_ascii=False)
    return ""


def remainder(whole: int, *parts: int) -> int:
    """What ``whole`` has beyond its ``parts``, not below zero; a whole that is no count stays as it was stated."""
    return whole if whole < 0 else max(0, whole - sum(parts))


def model_uses(usage: Record) -> dict[str, ModelUse]:
    """A ``modelUsage`` object, as Claude's result line and our own events write it."""
    return {
        name: ModelUse(
            Tokens(
                use.count("inputTokens"),
                use.count("outputTokens"),
                use.count("cacheCreationInputTokens"),
                use.count("cacheReadInputTokens"),
            ),
            use.number("costUSD"),
        )
        for name, use in ((name, usage.child(name)) for name in usage.raw)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
