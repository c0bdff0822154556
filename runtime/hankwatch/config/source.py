"""A JSON file with the line and column of everything in it."""

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hankwatch.config.diagnostics import Diagnostic
from hankwatch.config.refs import read_file
from hankwatch.config.scanner import Place, Scanner, SyntaxFault
from hankwatch.core.errors import PathRefused


@dataclass(frozen=True)
class Document:
    """One file of configuration as it was read; never changes afterwards."""

    value: Any
    """Plain JSON data; None when ``readable`` is False."""
    file: str
    """As diagnostics name it."""
    readable: bool
    """The text was JSON to its end (perhaps with faults whose meaning is plain, as a trailing comma)."""
    faults: tuple[Diagnostic, ...] = ()
    """Everything about the text that is not JSON; ``validate`` adds them to its sink."""
    text: str | None = None
    """None for a value that has no file."""
    places: dict[str, Place] | None = None

    @classmethod
    def load(cls, path: Path, shown_as: str | None = None) -> Self:
        """Read a file named by the user; a missing or unreadable one is a document with a fault.

        BOM and CRLF are accepted. ``shown_as`` is how diagnostics name it (default: the path as given).
        """
        name = shown_as or str(path)
        try:
            text = read_file(path, shown_as=name)
        except PathRefused as refused:
            fault = Diagnostic(name, "", "file-unreadable", f"the file {refused.reason}", line=None)
            return cls(None, name, readable=False, faults=(fault,))
        return cls.parse(text, name)

    @classmethod
    def parse(cls, text: str, file: str) -> Self:
        """Read text that was read elsewhere (for example by ``read_ref``)."""
        text = text.removeprefix("\ufeff")
        scanner = Scanner(text)
        value = scanner.read()
        lines = _Lines(text)
        faults = tuple(_diagnostic(fault, file, lines) for fault in scanner.faults)
        return cls(value, file, readable=scanner.complete, faults=faults, text=text, places=scanner.places)

    @classmethod
    def from_value(cls, value: Any, file: str = "<inline>") -> Self:
        """A document without a file: plain JSON data from a caller or an environment variable.

        Held to the rules of a file (NaN and half surrogates are faults); nothing in it has a line.
        """
        read = cls.parse(json.dumps(value), file)
        faults = tuple(Diagnostic(file, f.pointer, f.code, f.message, f.hint) for f in read.faults)
        return cls(read.value, file, readable=read.readable, faults=faults)

    def at(self, pointer: str) -> Any:
        """The value at a JSON pointer; raises KeyError when there is none."""
        value = self.value
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            else:
                raise KeyError(pointer)
        return value

    def locate(self, pointer: str, *, key: bool = False) -> tuple[int, int] | None:
        """1-based line and column of the value at a pointer, or with ``key`` of its key.

        For a pointer to something missing, those of the nearest value around it. None without a file.
        """
        if self.places is None or self.text is None:
            return None
        near = pointer
        while near not in self.places:
            if not near:
                return None
            near = near.rpartition("/")[0]
        place = self.places[near]
        wants_key = key and near == pointer and place.key is not None
        return self._lines.position(place.key if wants_key and place.key is not None else place.value)

    @cached_property
    def _lines(self) -> "_Lines":
        return _Lines(self.text or "")


class _Lines:
    """Offsets of one text as lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def _diagnostic(fault: SyntaxFault, file: str, lines: _Lines) -> Diagnostic:
    line, column = lines.position(fault.offset)
    return Diagnostic(file, fault.pointer, fault.code, fault.message, fault.hint, line=line, column=column)
