"""``try --watch``: once more on every save of a sentinel's files, with what that changed."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text
from watchfiles import watch

from hankwatch.bench.attempt import Fire
from hankwatch.cli import output
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.core.errors import HankwatchError
from hankwatch.events.envelope import format_stamp
from hankwatch.pages.words import plural
from hankwatch.sentinels.config import parse_sentinel
from hankwatch.sentinels.prompts import prompt_refs

INTERRUPTED: Final = 130
_LOOK_MS = 1_000
"""Looked at least so often: some file systems tell nobody of a change."""
_SETTLED_MS = 50
"""A save in several steps is one save."""
_MOST_LINES = 10

Fired = tuple[int, str, tuple[str, ...]]
"""Instant, cause and event ids: what makes two fires the same."""
Stamps = dict[Path, tuple[int, int, int] | None]
"""Of each file what changes when it is saved; None where there is none."""


def fired(fire: Fire) -> Fired:
    """What is compared of a fire, without its events."""
    return fire.batch.at_ms, str(fire.batch.cause), tuple(event.id for event in fire.batch.events)


def on_each_save(path: Path, play: Callable[[], Sequence[Fired]], console: Console) -> int:
    """Play now and after every save of ``path`` or a file it names, until Ctrl-C; returns the exit code.

    A save with faults shows them, and the next one is waited for.
    """
    before: Counter[Fired] | None = None
    files = {path}
    try:
        while True:
            files = {path, *(_named_files(path) or files)}
            seen = _stamps(files)
            if console.is_terminal:
                console.clear()
            try:
                now = Counter(play())
            except HankwatchError as error:
                output.print_error(error)
            else:
                for line in _changes(before, now):
                    console.print(line)
                before = now
            console.print(Text(f"Waiting for a save of {_listed(files)}; Ctrl-C ends.", style="dim"))
            _wait(files, seen)
            if not console.is_terminal:
                console.print()
    except KeyboardInterrupt:
        return INTERRUPTED


def _named_files(path: Path) -> set[Path]:
    """What the config names, whether it is there or not; empty when the config does not say."""
    config = parse_sentinel(Document.load(path), Diagnostics())
    if config is None:
        return set()
    refs = [ref for _, ref in prompt_refs(config)]
    if config.structured_output is not None and config.structured_output.schema_file is not None:
        refs.append(config.structured_output.schema_file)
    return {path.parent / ref for ref in refs} | {path}


def _stamps(files: set[Path]) -> Stamps:
    stamps: Stamps = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            stamps[file] = None
        else:
            stamps[file] = (status.st_ino, status.st_mtime_ns, status.st_size)
    return stamps


def _wait(files: set[Path], seen: Stamps) -> None:
    # Folders: an editor that saves by renaming leaves a watched file behind.
    folders = {file.parent for file in files if file.parent.is_dir()}
    for _ in watch(
        *folders, recursive=False, step=_SETTLED_MS, rust_timeout=_LOOK_MS, yield_on_timeout=True, watch_filter=None
    ):
        if _stamps(files) != seen:
            return


def _changes(before: Counter[Fired] | None, now: Counter[Fired]) -> Iterator[Text]:
    if before is None:
        return
    new, gone = now - before, before - now
    if not new and not gone:
        yield Text("The fires are those of the save before.", style="bold")
        return
    yield Text(f"Against the save before: +{new.total()} −{gone.total()}", style="bold")
    for sign, style, changed in (("+", "green", new), ("−", "red", gone)):
        for at_ms, cause, ids in sorted(changed)[:_MOST_LINES]:
            yield Text(f"{sign} {format_stamp(at_ms)}  {cause:<10} {plural(len(ids), 'event')}", style=style)
        if len(changed) > _MOST_LINES:
            yield Text(f"{sign} and {len(changed) - _MOST_LINES} more", style=style)


def _listed(files: set[Path]) -> str:
    return ", ".join(sorted(map(output.shown_path, files)))
