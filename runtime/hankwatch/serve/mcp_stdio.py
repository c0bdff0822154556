"""What an MCP client writes to our stdin: its lines, none of which fills the memory."""

import os
from io import TextIOWrapper
from typing import Final

import anyio

from hankwatch.serve.gate import MAX_BODY_BYTES

MAX_LINE_CHARS: Final = MAX_BODY_BYTES
"""Of one message: as much as one over HTTP."""
_TOO_LONG: Final = "a line that is too long\n"
"""Stands for one; no message, as it is."""


class BoundedLines(TextIOWrapper):
    """Text whose lines are read whole or not at all."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as its own base class has it
        """The next line, or one that is no message in place of a longer one; empty at the end."""
        if size >= 0:
            return super().readline(size)
        line = more = super().readline(MAX_LINE_CHARS + 1)
        if len(line) <= MAX_LINE_CHARS:
            return line
        while more and not more.endswith("\n"):
            more = super().readline(MAX_LINE_CHARS)
        return _TOO_LONG


def own_stdin() -> anyio.AsyncFile[str]:
    """Stdin under another descriptor: whatever else of this process reads descriptor 0 finds nothing there."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Not closed: at the end a thread may still wait for the next line.
    return anyio.wrap_file(BoundedLines(os.fdopen(wire, "rb", closefd=False), encoding="utf-8", errors="replace"))
