"""A journal followed for as long as its run lives (spec cli, ``tail``)."""

import os
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.errors import UsageError
from hankwatch.core.files import reading
from hankwatch.events.envelope import Event
from hankwatch.stream.damage import damage_named
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader, is_gzipped, require_cursor

_LOOK_S = 0.25
"""How often it is looked whether the writer still lives."""


def check_cursor(path: Path, cursor: int) -> None:
    """Refuse a cursor at which no event of this journal ends.

    Raises:
        UsageError: it is none.
    """
    require_cursor(cursor)
    if cursor == 0 or is_gzipped(path):
        return
    with reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(min(cursor, size + 1) - 1)
        if file.read(1) != b"\n":
            raise UsageError(
                f"{cursor} is no cursor of {path}, which has {size} bytes",
                hint="cursors come from `hankwatch tail --json`",
            )


async def follow(reader: JournalReader, after: int, show: Callable[[Event], None], *, clock: Clock) -> None:
    """Show the events behind ``after``, and those being written until the writer lets go of the journal or dies.

    Raises:
        UsageError: it cannot be read to its end.
    """
    lock, seen = lock_path(reader.path), after
    if holder(lock) is not None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_free, lock, tasks.cancel_scope, clock)
            async with aclosing(reader.tail(after, clock=clock)) as events:
                async for event in events:
                    seen = event.cursor
                    show(event)
    for event in _rest(reader, seen):
        show(event)


def _rest(reader: JournalReader, after: int) -> Iterator[Event]:
    with damage_named(reader.path):
        yield from reader.read(after)


async def _cancel_when_free(lock: Path, scope: anyio.CancelScope, clock: Clock) -> None:
    while holder(lock) is not None:
        await clock.sleep(_LOOK_S)
    scope.cancel()
