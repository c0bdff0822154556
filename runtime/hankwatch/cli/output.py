"""What all commands print with: two consoles, error form, money, event lines."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hankwatch.config.diagnostics import Diagnostic
from hankwatch.core.errors import ConfigError, HankwatchError
from hankwatch.core.text import shorten, strip_controls
from hankwatch.events.envelope import Event, EventData

_PIPED_WIDTH = 200
"""Nobody sees where a pipe's lines end, so nothing is folded there."""


def stdout() -> Console:
    """For results; plain when piped or with ``NO_COLOR``."""
    return _console(sys.stdout)


def stderr() -> Console:
    """For progress and errors."""
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    return Console(file=file, highlight=False, soft_wrap=True, width=None if file.isatty() else _PIPED_WIDTH)


def people(*, as_json: bool) -> Console:
    """Where text for people goes: stdout, or stderr when stdout carries JSON."""
    return stderr() if as_json else stdout()


def print_json(value: Any) -> None:
    """One JSON value on one line of stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_error(error: HankwatchError) -> None:
    """The documented form: every diagnostic, or code, message and hint."""
    console = stderr()
    if isinstance(error, ConfigError):
        print_diagnostics(error.diagnostics, console)
        return
    console.print(Text.assemble((f"error[{error.code}]", "bold red"), f": {strip_controls(str(error))}"))
    if error.hint:
        console.print(Text.assemble(("hint", "bold"), f": {strip_controls(error.hint)}"))


def print_diagnostics(diagnostics: Sequence[Diagnostic], console: Console) -> None:
    """One block each: place, severity and code, message; the hint below."""
    for d in diagnostics:
        place = d.file + "".join(f":{n}" for n in (d.line, d.column) if n is not None)
        style = "bold red" if d.severity == "error" else "bold yellow"
        head = Text.assemble((place, "bold"), ": ", (f"{d.severity}[{d.code}]", style), ": ", strip_controls(d.message))
        console.print(head)
        where = f"  at {d.pointer}" if d.pointer else ""
        if where:
            console.print(Text(strip_controls(where), style="dim"))
        if d.hint:
            console.print(Text.assemble(("  hint", "bold"), f": {strip_controls(d.hint)}"))


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
    """One event on one line, controls stripped."""
    return Text.assemble(
        (event.timestamp[11:-1], "dim"), " ", (f"{event.type:<20}", "cyan"), " ", shorten(gist(event), width)
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
