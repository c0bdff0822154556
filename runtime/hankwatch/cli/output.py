"""What all commands print with: two streams, JSON, the error form, money, paths. Loads Rich only to use it."""

import errno
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from hankwatch.config.diagnostics import Diagnostic
from hankwatch.core.errors import ConfigError, HankwatchError
from hankwatch.core.text import strip_controls

if TYPE_CHECKING:
    from rich.console import Console

_BEYOND_JSON = re.compile("[\x7f-\x9f]")
"""Control characters that JSON leaves as they are."""


_GONE = {errno.EPIPE, errno.EIO}
"""A pipe without a reader, a terminal that was closed."""


_SEE_DEBUG = "--debug shows where this comes from"
_HINTS = {2: "`hankwatch COMMAND --help` shows how a command is meant"}
"""What to do about an error that does not say so itself, by its exit code."""


class ReaderGone(Exception):
    """Whoever read this output has stopped reading, as ``| head`` does."""


class _Output:
    """A standard stream whose reader may go away: from then on nothing is written.

    The command goes on, so that its work is done and its exit code is true; an ``endless`` one, whose work is
    its output, is told by ``ReaderGone``.
    """

    def __init__(self, stream: IO[str], *, endless: bool) -> None:
        self._stream = stream
        self._endless = endless

    def write(self, text: str) -> int:
        with self._noticing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._noticing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            # What is still buffered, and the interpreter's own flush at its end, must not fail again.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            if self._endless:
                raise ReaderGone from None


def stdout(*, endless: bool = False) -> "Console":
    """For results (``terminal.console``).

    With ``endless`` printing raises ``ReaderGone`` once nobody reads any more; else it goes nowhere then.
    """
    return _console(sys.stdout, endless=endless)


def stderr() -> "Console":
    """For progress and errors."""
    return _console(sys.stderr, endless=False)


def _console(stream: IO[str], *, endless: bool) -> "Console":
    from hankwatch.cli import terminal

    return terminal.console(cast("IO[str]", _Output(stream, endless=endless)))


def say(text: str) -> None:
    """One line on stdout without any decoration, and without loading what decorates."""
    output = _Output(sys.stdout, endless=False)
    output.write(strip_controls(text) + "\n")
    output.flush()


def people(*, as_json: bool, endless: bool = False) -> "Console":
    """Where text for people goes: stdout, or stderr when stdout carries JSON."""
    return stderr() if as_json else stdout(endless=endless)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows on a terminal's stderr that something goes on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    with stderr().status(Text(strip_controls(what))):
        yield


def print_json(value: Any, *, endless: bool = False) -> None:
    """One JSON value on one line of stdout, at once; ``endless`` as for ``stdout``."""
    line = json.dumps(value, ensure_ascii=False)
    output = _Output(sys.stdout, endless=endless)
    output.write(_BEYOND_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", line) + "\n")
    output.flush()


def print_error(error: HankwatchError) -> None:
    """The documented form: every diagnostic, or code, message and hint."""
    console = stderr()
    if isinstance(error, ConfigError):
        print_diagnostics(error.diagnostics, console)
        return
    print_fault(error.code, str(error), error.hint or _HINTS.get(error.exit_code, _SEE_DEBUG), console)


def print_fault(code: str, message: str, hint: str | None, console: "Console") -> None:
    """An error by its stable code, and what to do about it."""
    from rich.text import Text

    console.print(Text.assemble((f"error[{code}]", "bold red"), f": {message}"))
    if hint:
        console.print(Text.assemble(("hint", "bold"), f": {hint}"))


def print_diagnostics(diagnostics: Sequence[Diagnostic], console: "Console") -> None:
    """One block each: place, severity and code, message; the hint below."""
    from rich.text import Text

    for d in diagnostics:
        place = d.file + "".join(f":{n}" for n in (d.line, d.column) if n is not None)
        style = "bold red" if d.severity == "error" else "bold yellow"
        head = Text.assemble((place, "bold"), ": ", (f"{d.severity}[{d.code}]", style), ": ", d.message)
        console.print(head)
        if d.pointer:
            console.print(Text(f"  at {d.pointer}", style="dim"))
        if d.hint:
            console.print(Text.assemble(("  hint", "bold"), f": {d.hint}"))


def shown_path(path: Path) -> str:
    """As a person would type it: relative to the working directory where it lies below it."""
    try:
        return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    except OSError:  # the working directory is gone
        return str(path)
