"""``tail``, ``journal stats`` and ``journal import``."""

from contextlib import aclosing
from pathlib import Path

import anyio
from rich.console import Console

from hankwatch.app import base_dir
from hankwatch.bench.importing import import_journal
from hankwatch.bench.sources import open_source
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.events.catalogue import KNOWN_TYPES
from hankwatch.events.envelope import Event
from hankwatch.runner.execution import find_execution
from hankwatch.runner.state import RunState, fold
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.statistics import JournalStatistics, journal_statistics


def tail(target: str, *, types: list[str] | None, since: int, config: Path | None, as_json: bool) -> int:
    """Follow a journal until its run has ended; 0, or 1 when the last run failed."""
    for name in types or ():
        if name not in KNOWN_TYPES:
            raise UsageError(
                f"no event type is named {name!r}", hint="`hankwatch journal stats` lists those that occur"
            )
    path = _journal(target, config)
    last = JournalReader(path).last(1)
    end = last[0].cursor if last else 0
    if since > end:
        raise UsageError(f"the journal ends at cursor {end}, not {since}")
    # A finished journal ends at its last event; a live run with its own last transition.
    until = end if holder(lock_path(path)) is None else None
    return 0 if since == until else anyio.run(_tail, path, types, since, until, as_json)


async def _tail(path: Path, types: list[str] | None, since: int, until: int | None, as_json: bool) -> int:
    reader, console, state = JournalReader(path), output.stdout(), RunState()
    async with aclosing(reader.tail(since, clock=SystemClock())) as events:
        async for event in events:
            state = fold((event,), state)
            if not types or event.type in types:
                _show(event, console, as_json=as_json)
            if _is_end(event) if until is None else event.cursor >= until:
                break
    if reader.bad_lines:
        output.stderr().print(f"{reader.bad_lines} bad lines skipped")
    return 1 if state.current is not None and state.current.status in {"failed", "crashed"} else 0


def _is_end(event: Event) -> bool:
    return event.type == "state.transition" and event.data.get("transitionType") in {"RunCompleted", "RunFailed"}


def _show(event: Event, console: Console, *, as_json: bool) -> None:
    if as_json:
        output.print_json(event.envelope() | {"cursor": event.cursor})
    else:
        console.print(output.event_line(event))


def stats(target: str, *, config: Path | None, as_json: bool) -> int:
    """Integrity, counts and sizes; 1 when anything in the journal is not right."""
    found = journal_statistics(_journal(target, config))
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
    rows = output.table("type", "#events", "#bytes", "#share")
    for name, kind in sorted(found.types.items(), key=lambda item: -item[1].size_bytes):
        share = f"{100 * kind.size_bytes / max(1, found.size_bytes):.1f} %"
        rows.add_row(name, str(kind.count), f"{kind.size_bytes:,}", share)
    console.print(rows)
    span = f"{found.first or '-'} to {found.last or '-'}"
    console.print(f"{found.path}: {found.events} events, {found.size_bytes:,} bytes, {span}", markup=False)
    for name, count in (found.problems | dict(found.flags)).items():
        if count:
            console.print(f"{name}: {count}")
    console.print("integrity: " + ("ok" if found.ok else "see above"))


def import_(source: Path, *, out: Path, agent: str | None, codon: str, as_json: bool) -> int:
    """Write a journal from a recording; 0."""
    if not source.is_file():
        raise UsageError(f"{source} does not exist")
    settings, environ = cli_settings(None)
    recording = open_source(str(source), base_dir(settings, environ), agent=agent, codon=codon)
    if recording.program == "journal":
        recording.codon = None
    counts = import_journal(recording, out, environ)
    left_out = {"badLines": recording.bad_lines, "replayed": recording.replayed, **recording.counts}
    if as_json:
        output.print_json(
            {"out": str(out), "program": recording.program, "events": counts.total(), "types": counts} | left_out
        )
        return 0
    console = output.stdout()
    console.print(f"{counts.total()} events from a stream of {recording.program} written to {output.shown_path(out)}")
    for name, count in left_out.items():
        if count:
            console.print(f"  {name}: {count}")
    return 0


def _journal(target: str, config: Path | None) -> Path:
    path = Path(target)
    if path.is_file():
        return path
    settings, environ = cli_settings(config)
    journal = find_execution(target, base_dir(settings, environ)).layout.journal
    if not journal.is_file():
        raise UsageError(f"{target} has no journal yet")
    return journal
