"""Text and JSON from outside, made harmless once at intake (spec events), and text made fit for a terminal."""

import math
import re
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 100
"""Containers inside containers; what lies deeper is cut."""
CUT_MARK = "[cut: nested too deep]"
"""Stands where a container was cut."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_SMALLEST_INT, _LARGEST_INT = -(2**63), 2**64 - 1

_CONTROLS = re.compile(
    r"""
      \x1b \[ [0-?]* [\ -/]* [@-~]                                 # CSI: colours, cursor
    | [\x9b] [0-?]* [\ -/]* [@-~]                                  # the same, 8-bit
    | (?: \x1b [\]PX^_] | [\x9d\x90\x98\x9e\x9f] )                 # OSC, DCS, SOS, PM, APC: titles, links
      [^\x07\x1b\x9c\n]* (?: \x07 | \x1b \\ | \x9c )
    | \x1b [\ -/]* [0-~]                                           # shorter escapes
    | [\x00-\x08\x0b-\x1f\x7f-\x9f]                                # whatever control is left
    | [\u202a-\u202e\u2066-\u2069]                                # overrides of direction: what is read is not what stands
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What intake had to change, by kind."""

    surrogates: int = 0
    """Strings that were no valid Unicode; each bad character became U+FFFD."""
    non_finite: int = 0
    """NaN and infinities that became null."""
    big_ints: int = 0
    """Integers beyond 64 bit that became strings."""
    cut_depth: int = 0
    """Containers nested deeper than the limit that were cut."""

    def __bool__(self) -> bool:
        return bool(self.surrogates or self.non_finite or self.big_ints or self.cut_depth)


def clean_json(value: Any, *, max_depth: int = MAX_DEPTH) -> tuple[Any, Cleaned]:
    """A JSON value that any JSON reader takes, and what that changed; the value itself is not touched."""
    cleaner = _Cleaner()
    clean = cleaner.clean(value, max_depth)
    return clean, Cleaned(cleaner.surrogates, cleaner.non_finite, cleaner.big_ints, cleaner.cut_depth)


@dataclass(slots=True)
class _Cleaner:
    """One value's cleaning, and what it took."""

    surrogates: int = 0
    non_finite: int = 0
    big_ints: int = 0
    cut_depth: int = 0

    def clean(self, value: Any, room: int) -> Any:
        """``value`` clean, with at most ``room`` containers inside each other."""
        match value:
            case str():
                return self._text(value)
            case float() if not math.isfinite(value):
                self.non_finite += 1
                return None
            case int() if not _SMALLEST_INT <= value <= _LARGEST_INT:
                self.big_ints += 1
                return _digits(value)
            case dict() | list() | tuple():
                return self._container(value, room)
        return value

    def _container(self, value: dict[str, Any] | list[Any] | tuple[Any, ...], room: int) -> Any:
        if room == 0:
            self.cut_depth += 1
            return CUT_MARK
        if isinstance(value, dict):
            return {self._text(key): self.clean(item, room - 1) for key, item in value.items()}
        return [self.clean(item, room - 1) for item in value]

    def _text(self, text: str) -> str:
        clean = clean_text(text)
        if clean is not text:
            self.surrogates += 1
        return clean


def clean_text(text: str) -> str:
    """``text`` as valid Unicode: a surrogate pair becomes its character, a lone one U+FFFD.

    The same object when there is none.
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def strip_controls(text: str) -> str:
    """``text`` without terminal escapes, control characters and turns of direction; newlines and tabs stay."""
    return _CONTROLS.sub("", text)


def one_line(text: str) -> str:
    """Text of any origin as one line without control characters."""
    return " ".join(strip_controls(text).split())


def shorten(text: str, limit: int, marker: str = "…") -> str:
    """``text`` in at most ``limit`` characters; a cut one ends with ``marker``."""
    if len(text) <= limit:
        return text
    return text[: max(0, limit - len(marker))] + marker[:limit]


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # the interpreter refuses decimals of thousands of digits
        return hex(value)
