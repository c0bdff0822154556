"""What a file holds, for a watch on it: read anew each time, whatever became of the file meanwhile (spec watches 4)."""

import hashlib
import os
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from hankwatch.core.errors import BadLine
from hankwatch.core.files import reading
from hankwatch.core.intake import parse_json

MAX_BYTES: Final = 8 * 1024 * 1024
"""Larger files are compared by their hash only."""
MAX_TEXT_CHARS: Final = 256 * 1024


class NoDocument(Exception):
    """The file makes no claim; ``code`` says why."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Held:
    """What a file holds at a pointer."""

    exists: bool
    """False: no such file, or nothing at the pointer."""
    value: Any = None
    """JSON of the file, or of the pointer; of another file its text, or hash and size when it is large."""
    text: str = ""


def read_document(path: Path, pointer: str | None, *, within: Path | None) -> Held:
    """The content of a file now.

    Args:
        path: Absolute.
        pointer: JSON Pointer, or None for the whole.
        within: A folder that the file must really lie in, links followed; None for anywhere.

    Raises:
        NoDocument: it cannot be read, or is no JSON although there is a pointer, or lies elsewhere.
    """
    try:
        with reading(path) as file:
            if within is not None:
                _require_within(file.fileno(), within)
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                return _large(file, size, pointer)
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Held(exists=False)
    except PermissionError as error:
        raise NoDocument("unauthorized", str(error)) from error
    except OSError as error:
        raise NoDocument("unreadable", str(error)) from error
    return _held(data, pointer)


def _held(data: bytes, pointer: str | None) -> Held:
    text = data.decode("utf-8-sig", "replace")
    try:
        value, _ = parse_json(data.removeprefix(BOM_UTF8))
    except BadLine as error:
        if pointer is not None:  # most likely half written
            raise NoDocument("no-json", str(error)) from error
        return Held(exists=True, value=text[:MAX_TEXT_CHARS], text=text[:MAX_TEXT_CHARS])
    if pointer is None:
        return Held(exists=True, value=value, text=text[:MAX_TEXT_CHARS])
    found, value = _at(value, pointer)
    if not found:
        return Held(exists=False)
    return Held(exists=True, value=value, text=value if isinstance(value, str) else orjson.dumps(value).decode())


def _at(value: Any, pointer: str) -> tuple[bool, Any]:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            return False, None
    return True, value


def _large(file: Any, size: int, pointer: str | None) -> Held:
    if pointer is not None:
        raise NoDocument("too-large", f"{size} bytes are more than a pointer is looked for in ({MAX_BYTES})")
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Held(exists=True, value={"sha256": sha256, "bytes": size}, text="")


def _require_within(fd: int, folder: Path) -> None:
    real = Path(f"/proc/self/fd/{fd}").readlink()  # after opening: a link that changes meanwhile gains nothing
    if not real.is_relative_to(folder.resolve()):
        raise NoDocument("outside", f"it leads to {real}, outside of {folder}")
