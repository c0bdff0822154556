"""A TOML file as a document: the same data and pointers as JSON, with the lines of its keys."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from hankwatch.config.diagnostics import Diagnostic
from hankwatch.config.refs import read_file
from hankwatch.config.scanner import Place
from hankwatch.config.source import Document
from hankwatch.core.errors import PathRefused

_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"""(\s*)([A-Za-z0-9_."'-]+)(\s*=\s*)\S""")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def load_toml(path: Path, shown_as: str | None = None) -> Document:
    """Read a TOML file named by the user; a fault of any kind is in the document's ``faults``.

    Lines are known for keys written as ``key = value`` under a ``[table]``, which is how settings are written.
    """
    name = shown_as or str(path)
    try:
        text = read_file(path, shown_as=name)
    except PathRefused as refused:
        fault = Diagnostic(name, "", "file-unreadable", f"the file {refused.reason}")
        return Document(None, name, readable=False, faults=(fault,))
    try:
        # Dates are no JSON; where one stands, text is never right either.
        value: dict[str, Any] = json.loads(json.dumps(tomllib.loads(text), default=str))
    except tomllib.TOMLDecodeError as error:
        at = _POSITION.search(str(error))
        end = (text.count("\n") + 1, len(text) - text.rfind("\n"))
        line, column = (int(at[1]), int(at[2])) if at and at[1] else end
        message = _POSITION.sub("", str(error))
        fault = Diagnostic(name, "", "toml-syntax", message, None, "error", line, column)
        return Document(None, name, readable=False, faults=(fault,))
    return Document(value, name, readable=True, text=text, places=_places(text))


def _places(text: str) -> dict[str, Place]:
    places = {"": Place(0, None)}
    table, offset = "", 0
    for line in text.splitlines(keepends=True):
        header, key = _TABLE.match(line), _KEY.match(line)
        if header:
            table = _pointer(header[1])
            places[table] = Place(offset, None)
        elif key:
            places[table + _pointer(key[2])] = Place(offset + key.end(3), offset + len(key[1]))
        offset += len(line)
    return places


def _pointer(dotted: str) -> str:
    return "".join(f"/{part.strip().strip(chr(34) + chr(39))}" for part in dotted.split("."))
