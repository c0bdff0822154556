"""``check``: recordings played under their sentinels, and what is not as expected (spec cli)."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from rich.console import Console
from rich.text import Text

from hankwatch.bench.check.capture import capture, run_events
from hankwatch.bench.check.carry import OnProgress, carry_out, hold_against
from hankwatch.bench.check.load import check_id, find_checks
from hankwatch.bench.check.result import CheckResult, exit_code, summary
from hankwatch.bench.check.seen import Seen, observe
from hankwatch.bench.check.selection import selector
from hankwatch.bench.replay import Progress
from hankwatch.bench.sources import open_source
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.core.text import strip_controls
from hankwatch.options import base_dir
from hankwatch.runner.execution import find_run
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.stream.lock import holder, lock_path

_STYLES = {"passed": "green", "failed": "bold red", "faulty": "bold yellow"}


@dataclass(frozen=True, slots=True)
class Options:
    """How checks are carried out and told."""

    select: str | None = None
    """``-k``."""
    update: bool = False
    junit: Path | None = None
    github: bool = False
    as_json: bool = False
    config: Path | None = None
    verbose: int = 0


def check(paths: list[Path], options: Options, *, run: str | None = None) -> int:
    """Carry out the checks; 0 when all passed, 1 when one failed, 2 when one has faults."""
    if options.update and run is not None:
        raise UsageError(
            "--update and --run do not go together", hint="`hankwatch check --from RUN` makes a check of it"
        )
    files = _selected(find_checks(paths), options.select)
    seen = _seen(run, options.config) if run is not None else None
    console = output.people(as_json=options.as_json)
    with _told_to_github(console, options) as results:
        anyio.run(_carry_out, files, seen, options, console, results)
        console.print(summary(results))
    if options.junit is not None:
        from hankwatch.bench.check.junit import junit

        options.junit.parent.mkdir(parents=True, exist_ok=True)
        options.junit.write_bytes(junit(results))
    if options.as_json:
        output.print_json({"summary": {"checks": len(results), **_counts(results)}})
    return exit_code(results)


def make(run: str, out: Path | None, options: Options) -> int:
    """Make a check of a finished run and carry it out; 0 when it passes as it is, else 1."""
    if out is None:
        raise UsageError("--from needs --out DIR", hint="name the folder that the check is to be")
    settings, environ = cli_settings(options.config)
    base = base_dir(settings, environ)
    source = open_source(run, base)
    with output.working(f"Reading {output.shown_path(source.path)}"):
        captured = capture(find_run(run, base).execution, source, out, settings.redaction.redactor(environ))
    console = output.people(as_json=options.as_json)
    calls = f" and {captured.calls} model calls" if captured.calls else ""
    console.print(f"{output.shown_path(captured.path)}: {captured.events} events{calls}")
    for warning in captured.warnings:
        console.print(Text.assemble(("warning", "bold yellow"), f": {warning}"))
    results: list[CheckResult] = []
    anyio.run(_carry_out, [captured.path], None, options, console, results)
    if exit_code(results):
        console.print("The replay is not what the run was; --update makes the check say what the replay is.")
    return 1 if exit_code(results) else 0


def _selected(files: list[Path], expression: str | None) -> list[Path]:
    if expression is None:
        return files
    chosen = selector(expression)
    selected = [path for path in files if chosen(check_id(path))]
    if not selected:
        ids = ", ".join(map(check_id, files[:5])) + (", …" if len(files) > 5 else "")
        raise UsageError(f"-k {expression!r} selects none of {len(files)} checks", hint=f"their ids: {ids}")
    return selected


def _seen(run: str, config: Path | None) -> dict[str, Seen]:
    settings, environ = cli_settings(config)
    source = open_source(run, base_dir(settings, environ))
    if (live := holder(lock_path(source.path))) is not None:
        raise UsageError(f"{run} is live ({live})", hint="wait until it has ended: what is missing may still come")
    with output.working(f"Reading {output.shown_path(source.path)}"):
        return observe(run_events(source))


async def _carry_out(
    files: Sequence[Path],
    seen: dict[str, Seen] | None,
    options: Options,
    console: Console,
    results: list[CheckResult],
) -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        for number, path in enumerate(files, 1):
            with _progress(f"[{number}/{len(files)}] {check_id(path)}") as on_progress:
                if seen is None:
                    result = await carry_out(path, sandbox, rewrite=options.update, on_progress=on_progress)
                else:
                    result = await hold_against(path, seen, sandbox)
            results.append(result)
            _show(result, console, options)


@contextmanager
def _progress(what: str) -> Iterator[OnProgress]:
    """On a terminal's stderr: which check it is, and how much of its recording is played."""
    console = output.stderr()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(Text(strip_controls(what))) as status:

        def show(progress: Progress) -> None:
            part = progress.read_bytes / max(progress.total_bytes, 1)
            status.update(Text(strip_controls(f"{what}  {part:.0%}, {progress.events:,} events")))

        yield show


def _show(result: CheckResult, console: Console, options: Options) -> None:
    if options.as_json:
        output.print_json(result.as_json())
    if result.outcome == "passed" and not result.updated and options.verbose < 0:
        return
    numbers = f"  {result.counts}" if result.outcome != "faulty" else ""
    console.print(Text.assemble((f"{result.outcome:<6}", _STYLES[result.outcome]), f"  {result.id}{numbers}"))
    for path in result.updated:
        console.print(f"  updated {output.shown_path(path)}")
    for note in result.notes:
        console.print(f"  {note}")
    for line in result.lines():
        console.print(Text(line, style=_colour(line)))


def _colour(line: str) -> str:
    mark = line.lstrip()[:3]
    return {"| -": "red", "| +": "green"}.get(mark, "")


@contextmanager
def _told_to_github(console: Console, options: Options) -> Iterator[list[CheckResult]]:
    """Collects results; with ``--github`` nothing printed meanwhile is a command of its, and it is told of them."""
    results: list[CheckResult] = []
    if not options.github:
        yield results
        return
    from hankwatch.bench.check.github import Commands, annotations, job_summary

    commands = Commands()
    console.print(commands.stop)
    try:
        yield results
    finally:
        console.print(commands.resume)
    for line in annotations(results, os.environ):
        console.print(line)
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(page).open("a", encoding="utf-8") as file:
            file.write(job_summary(results))


def _counts(results: Sequence[CheckResult]) -> dict[str, int]:
    return {outcome: sum(result.outcome == outcome for result in results) for outcome in _STYLES}
