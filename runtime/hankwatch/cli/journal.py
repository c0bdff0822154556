"""``tail``, ``journal stats`` and ``journal import``."""

from functools import partial
from pathlib import Path

import anyio
from rich.console import Console

from hankwatch.bench.following import check_cursor, follow
from hankwatch.bench.importing import import_journal
from hankwatch.bench.sources import open_source
from hankwatch.cli import output
from hankwatch.cli.event_lines import event_line
from hankwatch.cli.settings import cli_settings
from hankwatch.cli.terminal import print_line, table
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.events.catalogue import KNOWN_TYPES
from hankwatch.events.envelope import Event
from hankwatch.options import base_dir
from hankwatch.runner.execution import find_journal
from hankwatch.runner.summary import latest_outcome
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.statistics import JournalStatistics, journal_statistics


def tail(target: str, *, types: list[str] | None, since: int, config: Path | None, as_json: bool, verbose: int) -> int:
    """Follow a journal until its run has ended; 0, or 1 when that run failed or its process died."""
    for name in types or ():
        if name not in KNOWN_TYPES:
            raise UsageError(
                f"no event type is named {name!r}", hint="`hankwatch journal stats` lists those that occur"
            )
    path = _journal(target, config)
    check_cursor(path, since)
    console, reader = output.stdout(endless=True), JournalReader(path)

    def show(event: Event) -> None:
        if types and event.type not in types:
            return
        if as_json:
            output.print_json(event.envelope() | {"cursor": event.cursor}, endless=True)
        else:
            print_line(console, event_line(event, width=_width(console, verbose)))

    anyio.run(partial(follow, reader, since, show, clock=SystemClock()))
    if reader.bad_lines:
        output.stderr().print(f"{reader.bad_lines} bad lines skipped; `hankwatch journal stats` counts them")
    return 1 if latest_outcome(path) in {"failed", "crashed"} else 0


def _width(console: Console, verbose: int) -> int:
    if verbose > 0:
        return 2_000
    return max(40, console.width - 40) if console.is_terminal else 160


def stats(target: str, *, config: Path | None, as_json: bool) -> int:
    """Integrity, counts and sizes; 1 when anything in the journal is not right."""
    path = _journal(target, config)
    with output.working(f"Reading {output.shown_path(path)}"):
        found = journal_statistics(path)
    if as_json:
        types = {name: {"count": k.count, "sizeBytes": k.size_bytes} for name, k in sorted(found.types.items())}
        output.print_json(
            {
                "path": str(found.path),
                "sizeBytes": found.size_bytes,
                "events": found.events,
                "first": found.first,
                "last": found.last,
                "ok": found.ok,
                **found.problems,
                "flags": dict(found.flags),
                "types": types,
            }
        )
    else:
        _print_stats(found)
    return 0 if found.ok else 1


def _print_stats(found: JournalStatistics) -> None:
    console = output.stdout()
    rows = table("type", "#events", "#bytes", "#share")
    whole_bytes = max(1, sum(kind.size_bytes for kind in found.types.values()))
    for name, kind in sorted(found.types.items(), key=lambda item: -item[1].size_bytes):
        share = f"{100 * kind.size_bytes / whole_bytes:.1f} %"
        rows.add_row(name, str(kind.count), f"{kind.size_bytes:,}", share)
    console.print(rows)
    span = f"{found.first or '-'} to {found.last or '-'}"
    console.print(f"{found.path}: {found.events} events, {found.size_bytes:,} bytes, {span}")
    for name, count in (found.problems | dict(found.flags)).items():
        if count:
            console.print(f"{name}: {count}")
    console.print("integrity: " + ("ok" if found.ok else "see above"))


def import_(
    target: Path, *, out: Path, agent: str | None, codon: str | None, config: Path | None, as_json: bool
) -> int:
    """Write a journal from a recording; 0."""
    settings, environ = cli_settings(config)
    if not target.exists():
        raise UsageError(f"{target} does not exist")
    redactor = settings.redaction.redactor(environ)
    source = open_source(
        str(target),
        base_dir(settings, environ),
        agent=agent,
        codon=codon,
        tool_result_chars=settings.run.tool_result_chars,
        redact=redactor.text,
    )
    with output.working(f"Importing {output.shown_path(source.path)}"):
        counts = import_journal(source, out, redactor)
    left_out = {"badLines": source.bad_lines, "replayed": source.replayed, **source.counts}
    if as_json:
        output.print_json(
            {"out": str(out), "program": source.program, "events": counts.total(), "types": counts} | left_out
        )
        return 0
    console = output.stdout()
    console.print(f"{counts.total()} events from a stream of {source.program} written to {output.shown_path(out)}")
    for name, count in left_out.items():
        if count:
            console.print(f"  {name}: {count}")
    return 0


def _journal(target: str, config: Path | None) -> Path:
    settings, environ = cli_settings(config)
    return find_journal(target, base_dir(settings, environ))
