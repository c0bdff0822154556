"""``replay``: a recording once more, shown as it goes."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import anyio
from rich.console import Console

from hankwatch.bench.replay import Progress, Replayed
from hankwatch.cli import output
from hankwatch.cli.summaries import sentinel_json, tell_sentinels
from hankwatch.core.text import shorten
from hankwatch.replaying import ReplayRequest, carry_out

_INTERRUPTED = 130
_STOPS = (signal.SIGINT, signal.SIGTERM)
_SHOWN_ERRORS = 5
_ERROR_CHARS = 2_000


def replay(request: ReplayRequest, *, as_json: bool, verbose: int) -> int:
    """Replay and say what came of it; 0, or 130 when a signal ended it first."""
    last: list[Progress] = []
    with _shown(quiet=verbose < 0) as show:

        def note(progress: Progress) -> None:
            last[:] = [progress]
            show(progress)

        result = anyio.run(partial(_replay, request, note))
    if result is None:
        where = "".join(f" in {output.shown_path(progress.out)}" for progress in last)
        output.stderr().print(f"Interrupted; the journal{where} is whole and says so.")
        return _INTERRUPTED
    if as_json:
        output.print_json(_json(result))
    _tell(result, output.people(as_json=as_json))
    return 0


async def _replay(request: ReplayRequest, on_progress: Callable[[Progress], None]) -> Replayed | None:
    """The result, or None when SIGINT or SIGTERM came before it."""
    result: Replayed | None = None
    with anyio.open_signal_receiver(*_STOPS) as signals:
        async with anyio.create_task_group() as tasks:

            async def stop_when_told() -> None:
                async for _ in signals:
                    for number in _STOPS:  # a second one ends the process at once
                        signal.signal(number, signal.SIG_DFL)
                    tasks.cancel_scope.cancel()
                    return

            tasks.start_soon(stop_when_told)
            result = await carry_out(request, on_progress=on_progress)
            tasks.cancel_scope.cancel()
    return result


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal's stderr; nothing elsewhere, where nobody would see it move."""
    console = output.stderr()
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("Replaying"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[events]:,} events"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, events=0, rate=0.0)

        def show(progress: Progress) -> None:
            elapsed_s = bar.tasks[0].elapsed or 0.0
            rate = progress.events / elapsed_s if elapsed_s else 0.0
            bar.update(
                task, total=progress.total_bytes, completed=progress.read_bytes, events=progress.events, rate=rate
            )

        yield show


def _json(result: Replayed) -> dict[str, object]:
    root = result.out.root
    return {
        "execution": str(root),
        "journal": str(result.out.journal),
        "events": result.events,
        "badLines": result.bad_lines,
        "copies": result.replayed,
        "leftOut": result.left_out,
        "codons": result.codons,
        "fires": dict(result.fires),
        "sentinels": [sentinel_json(summary, root) for summary in result.sentinels],
        "errorCount": result.error_count,
        "errors": [
            {"sentinelId": e.sentinel_id, "codonId": e.codon_id, "errorType": e.error_type, "message": e.message}
            for e in result.errors
        ],
        "notes": result.notes,
    }


def _tell(result: Replayed, console: Console) -> None:
    if result.sentinels:
        tell_sentinels(result.sentinels, console)
        console.print(f"Reports lie below {output.shown_path(result.out.root)}\n")
    for error in result.errors[:_SHOWN_ERRORS]:
        message = shorten(error.message, _ERROR_CHARS)
        console.print(f"{error.sentinel_id} of {error.codon_id}: {error.error_type}: {message}", style="yellow")
    if (more := result.error_count - _SHOWN_ERRORS) > 0:
        journal = output.shown_path(result.out.root)
        console.print(f"{more} more errors of sentinels; `hankwatch tail {journal} --type sentinel.error` shows them")
    for note in result.notes:
        console.print(f"{note}.")
    console.print(f"Journal: {output.shown_path(result.out.journal)}")
