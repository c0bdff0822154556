"""What all commands print with: two consoles, error form, money, event lines."""

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hankwatch.config.diagnostics import Diagnostic
from hankwatch.core.errors import ConfigError, HankwatchError
from hankwatch.core.text import shorten, strip_controls
from hankwatch.events.envelope import Event, EventData

_PIPED_WIDTH = 200
"""Nobody sees where a pipe's lines end, so nothing is folded there."""
_BEYOND_JSON = re.compile("[\x7f-\x9f]")
"""Control characters that JSON leaves as they are."""


_GONE = {errno.EPIPE, errno.EIO}
"""A pipe without a reader, a terminal that was closed."""


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


class _Harmless(RenderHook):
    """Whatever is printed: its text loses terminal escapes, wherever in it they stand."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Stripped(renderable) for renderable in renderables]


class _Stripped:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(strip_controls(segment.text), segment.style)


def stdout(*, endless: bool = False) -> Console:
    """For results; plain when piped or with ``NO_COLOR``. Prints text as it is: no markup, no control characters.

    With ``endless`` printing raises ``ReaderGone`` once nobody reads any more; else it goes nowhere then.
    """
    return _console(sys.stdout, endless=endless)


def stderr() -> Console:
    """For progress and errors; otherwise as ``stdout``."""
    return _console(sys.stderr, endless=False)


def _console(file: IO[str], *, endless: bool) -> Console:
    console = Console(
        file=cast("IO[str]", _Output(file, endless=endless)),
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        width=None if file.isatty() else _PIPED_WIDTH,
    )
    console.push_render_hook(_Harmless())
    return console


def people(*, as_json: bool, endless: bool = False) -> Console:
    """Where text for people goes: stdout, or stderr when stdout carries JSON."""
    return stderr() if as_json else stdout(endless=endless)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows on a terminal's stderr that something goes on."""
    console = stderr()
    if console.is_terminal:
        with console.status(Text(strip_controls(what))):
            yield
    else:
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
    print_fault(error.code, str(error), error.hint, console)


def print_fault(code: str, message: str, hint: str | None, console: Console) -> None:
    """An error by its stable code, and what to do about it."""
    console.print(Text.assemble((f"error[{code}]", "bold red"), f": {message}"))
    if hint:
        console.print(Text.assemble(("hint", "bold"), f": {hint}"))


def print_diagnostics(diagnostics: Sequence[Diagnostic], console: Console) -> None:
    """One block each: place, severity and code, message; the hint below."""
    for d in diagnostics:
        place = d.file + "".join(f":{n}" for n in (d.line, d.column) if n is not None)
        style = "bold red" if d.severity == "error" else "bold yellow"
        head = Text.assemble((place, "bold"), ": ", (f"{d.severity}[{d.code}]", style), ": ", d.message)
        console.print(head)
        if d.pointer:
            console.print(Text(f"  at {d.pointer}", style="dim"))
        if d.hint:
            console.print(Text.assemble(("  hint", "bold"), f": {d.hint}"))


def money(cost_usd: float | None, *, unpriced: int = 0) -> str:
    """``$0.0245``, ``≥ $0.0245`` when calls without a known price are missing in it, ``unknown``."""
    if cost_usd is None:
        return "unknown"
    return f"{'≥ ' if unpriced else ''}${cost_usd:.4f}"


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table; columns that begin with ``#`` hold numbers."""
    made = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column.lstrip("#"), justify="right" if column.startswith("#") else "left", overflow="fold")
    return made


def shown_path(path: Path) -> str:
    """As a person would type it: relative to the working directory where it lies below it."""
    try:
        return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    except OSError:  # the working directory is gone
        return str(path)


def event_line(event: Event, *, width: int = 160) -> Text:
    """One event on one line."""
    return Text.assemble(
        (event.timestamp[11:-1], "dim"), " ", (f"{_one_line(event.type):<20}", "cyan"), " ", shorten(gist(event), width)
    )


def gist(event: Event) -> str:
    """What an event says, in one line without control characters."""
    data = event.data
    say = _GISTS.get(event.type)
    if say is not None:
        text = say(data)
    elif isinstance(data.get("message"), str):
        text = " ".join(filter(None, (data.get("sentinelId"), data["message"])))
    else:
        text = json.dumps(data, ensure_ascii=False)
    return _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(strip_controls(text).split())


def _action(data: EventData) -> str:
    if data.get("action") == "tool_use":
        return f"{data.get('toolName')} {json.dumps(data.get('toolInput'), ensure_ascii=False)}"
    return f"{data.get('action')}: {data.get('content')}"


def _result(data: EventData) -> str:
    outcome = data.get("outcome") or ("error" if data.get("isError") else "ok")
    return f"{data.get('toolName')} {outcome}: {data.get('result')}"


def _usage(data: EventData) -> str:
    total = " in all" if data.get("isFinal") else ""
    return f"{data.get('inputTokens')} in, {data.get('outputTokens')} out{total}, {money(data.get('totalCost'))}"


def _transition(data: EventData) -> str:
    moved = (data.get("transition") or {}).get("data") or {}
    change = f"{moved.get('from')} → {moved.get('to')}" if "to" in moved else ""
    return " ".join(filter(None, (data.get("transitionType"), data.get("codonId"), change)))


def _completed(data: EventData) -> str:
    outcome = "succeeded" if data.get("success") else "failed"
    return f"{data.get('codonId')} {outcome}, {money(data.get('cost'))}, {data.get('duration')} ms"


_GISTS: Mapping[str, Callable[[EventData], str]] = {
    "assistant.action": _action,
    "tool.result": _result,
    "token.usage": _usage,
    "state.transition": _transition,
    "codon.started": lambda d: (
        f"{d.get('codonId')} ({d.get('codonName')}), session {d.get('sessionId') or 'unknown yet'}"
    ),
    "codon.completed": _completed,
    "sentinel.loaded": lambda d: (
        f"{d.get('sentinelId')} on {d.get('triggerType')}, {d.get('executionStrategy')}, {d.get('model')}"
    ),
    "sentinel.triggered": lambda d: (
        f"{d.get('sentinelId')} #{d.get('triggerNumber')} on {d.get('eventCount')} events ({d.get('cause')})"
    ),
    "sentinel.output": lambda d: f"{d.get('sentinelId')} #{d.get('triggerNumber')}: {d.get('content')}",
    "sentinel.unloaded": lambda d: f"{d.get('sentinelId')} {d.get('reason')}, {d.get('llmCallCount')} calls",
}
