"""Repair of a journal whose writer died inside a line (spec events "Journal"; design "How it runs" 3)."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hankwatch.core.errors import BadLine
from hankwatch.events.codec import parse_json

_WINDOW_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Repair:
    """What opening a journal had to mend."""

    size_bytes: int
    """Length of the unterminated tail."""
    action: Literal["newline", "moved"]
    """``newline``: the tail was a whole event and got its newline. ``moved``: it went to the side file."""
    side_file: str | None = None
    """Name of the side file beside the journal, or None."""


def repair_tail(path: Path, fd: int) -> Repair | None:
    """Make the journal end with a whole line; returns what was done, or None when it did already.

    ``fd`` is open for reading and appending, under the owner lock. Whole lines are never touched. Dying
    half-way leaves at worst a second copy of the fragment: it is on disk before the journal is cut.

    Raises:
        OSError: the file system refused.
    """
    size = os.fstat(fd).st_size
    tail = b"".join(reversed(list(_backwards_to_newline(fd, size))))
    if not tail:
        return None
    if _is_object(tail):
        os.write(fd, b"\n")
        repair = Repair(len(tail), "newline")
    else:
        start = size - len(tail)
        repair = Repair(len(tail), "moved", _set_aside(path, start, tail))
        os.ftruncate(fd, start)
    os.fdatasync(fd)
    return repair


def _backwards_to_newline(fd: int, end: int) -> Iterator[bytes]:
    """The pieces behind the last newline, last piece first."""
    while end > 0:
        start = max(0, end - _WINDOW_BYTES)
        piece = os.pread(fd, end - start, start)
        newline = piece.rfind(b"\n")
        yield piece[newline + 1 :]
        if newline >= 0:
            return
        end = start


def _is_object(tail: bytes) -> bool:
    try:
        return isinstance(parse_json(tail.strip())[0], dict)
    except BadLine:
        return False


def _set_aside(path: Path, offset: int, tail: bytes) -> str:
    """Write the fragment beside the journal, never over an earlier one."""
    for attempt in range(1, 1000):
        side = path.with_name(f"{path.name}.torn-{offset}" + (f"-{attempt}" if attempt > 1 else ""))
        try:
            with side.open("xb") as file:
                file.write(tail)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            continue
        return side.name
    raise FileExistsError(f"too many side files beside {path}")
