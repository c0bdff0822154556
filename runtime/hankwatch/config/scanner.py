"""Strict JSON with the place of every key and value, and a fault with a place for everything else.

The standard decoder gives neither positions nor duplicate keys, and stops at the first fault. This one goes on
after faults whose meaning is plain (a trailing comma, a comment, a doubled key, ``NaN``), so that one reading
shows them all; at any other it stops.
"""

import math
import re
from dataclasses import dataclass, field
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing from typeshed
from typing import Any, NoReturn

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|#[^\n]*", re.DOTALL)
_NOT_FINITE = re.compile(r"-?(?:NaN|Infinity)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 100
_MAX_DIGITS = 400


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Something that is not JSON."""

    offset: int
    """Into the text, in characters."""
    pointer: str
    """Of the value it stands in or at."""
    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where one value stands, as character offsets."""

    value: int
    key: int | None
    """None for list items and the document itself."""


class _Unreadable(Exception):
    """The rest of the text has no plain meaning."""


def escape(key: str) -> str:
    """One token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


@dataclass(slots=True)
class Scanner:
    """One reading of one text; ``read()`` once, then look at ``places`` and ``faults``."""

    text: str
    places: dict[str, Place] = field(default_factory=dict)
    """JSON pointer -> place."""
    faults: list[SyntaxFault] = field(default_factory=list)
    complete: bool = False
    """The text was read to its end; without it the value means nothing."""
    _at: int = 0
    _depth: int = 0

    def read(self) -> Any:
        """The document's value; None when it could not be read to its end."""
        try:
            self._skip("")
            value = self._value("", None)
            self._skip("")
            if self._at < len(self.text):
                self._stop("", "the document ends here, but more text follows")
        except _Unreadable:
            return None
        self.complete = True
        return value

    def _value(self, pointer: str, key_at: int | None) -> Any:
        self.places[pointer] = Place(self._at, key_at)
        start = self.text[self._at : self._at + 1]
        if start in {"{", "["}:
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                self._stop(pointer, f"nested deeper than {_MAX_DEPTH} levels")
            value = self._object(pointer) if start == "{" else self._array(pointer)
            self._depth -= 1
            return value
        if start == '"':
            return self._string(pointer)
        return self._scalar(pointer)

    def _object(self, pointer: str) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._at += 1
        while not self._closes("}", pointer, empty=not members):
            key_at = self._at
            if self.text[key_at : key_at + 1] != '"':
                self._stop(pointer, "expected a key in double quotes" + (" or '}'" if not members else ""))
            key = self._string(pointer)
            inner = f"{pointer}/{escape(key)}"
            if key in members:
                self._fault(key_at, inner, "duplicate-key", f"the key {key!r} is given twice", "keep one of them")
            self._skip(pointer)
            if self.text[self._at : self._at + 1] != ":":
                self._stop(inner, f"expected ':' after the key {key!r}")
            self._at += 1
            self._skip(inner)
            members[key] = self._value(inner, key_at)
        return members

    def _array(self, pointer: str) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        while not self._closes("]", pointer, empty=not items):
            items.append(self._value(f"{pointer}/{len(items)}", None))
        return items

    def _closes(self, bracket: str, pointer: str, *, empty: bool) -> bool:
        """Step over what stands between two members: True at the end of the container."""
        self._skip(pointer)
        char = self.text[self._at : self._at + 1]
        if char == bracket:
            self._at += 1
            return True
        if empty:
            return False
        if char != ",":
            self._stop(pointer, f"expected ',' or '{bracket}'")
        comma = self._at
        self._at += 1
        self._skip(pointer)
        if self.text[self._at : self._at + 1] == bracket:
            self._fault(comma, pointer, "json-syntax", f"trailing comma before '{bracket}'", "remove the comma")
            self._at += 1
            return True
        return False

    def _string(self, pointer: str) -> str:
        start = self._at
        try:
            value: str
            value, self._at = scanstring(self.text, start + 1, True)
        except JSONDecodeError as error:
            self._at = min(error.pos, len(self.text))
            self._stop(pointer, error.msg[:1].lower() + error.msg[1:])
        if _SURROGATE.search(value):
            self._fault(start, pointer, "json-syntax", "half of a surrogate pair in a string", "write the character")
            value = _SURROGATE.sub("\ufffd", value)
        return value

    def _scalar(self, pointer: str) -> Any:
        number = _NUMBER.match(self.text, self._at)
        if number:
            return self._number(pointer, number.group())
        not_finite = _NOT_FINITE.match(self.text, self._at)
        if not_finite:
            self._fault(self._at, pointer, "json-number", f"{not_finite.group()} is no JSON number", "write a number")
            self._at = not_finite.end()
            return math.nan
        for word, value in _WORDS.items():
            if self.text.startswith(word, self._at):
                self._at += len(word)
                return value
        char = self.text[self._at : self._at + 1]
        if char == "'":
            self._stop(pointer, "strings stand in double quotes, not in single ones")
        return self._stop(pointer, "expected a value" if char else "the document ends too early")

    def _number(self, pointer: str, digits: str) -> int | float:
        start, self._at = self._at, self._at + len(digits)
        number = float(digits) if len(digits) <= _MAX_DIGITS else math.inf
        if not math.isfinite(number):
            self._fault(start, pointer, "json-number", "the number is too large", "write a number of ordinary size")
            return number
        if digits.lstrip("-").isdigit():
            return int(digits)
        # 5.0 is the integer 5 to JSON; beyond 2**53 a float has no exact integer.
        return int(number) if number.is_integer() and abs(number) <= 2**53 else number

    def _skip(self, pointer: str) -> None:
        while True:
            space = _SPACE.match(self.text, self._at)
            self._at = space.end() if space else self._at
            comment = _COMMENT.match(self.text, self._at)
            if not comment:
                return
            self._fault(self._at, pointer, "json-syntax", "comments are not JSON", "remove the comment")
            self._at = comment.end()

    def _fault(self, offset: int, pointer: str, code: str, message: str, hint: str | None = None) -> None:
        self.faults.append(SyntaxFault(offset, pointer, code, message, hint))

    def _stop(self, pointer: str, message: str) -> NoReturn:
        self._fault(self._at, pointer, "json-syntax", message)
        raise _Unreadable
