"""Watches the files of a codon's workspace and tells what happens to them (spec hank 2, reference 3.2.8)."""

import errno
import hashlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from watchfiles import awatch

from hankwatch.core.clock import Clock
from hankwatch.core.errors import PathRefused
from hankwatch.core.tasks import task_group
from hankwatch.core.text import clean_text
from hankwatch.core.threads import never, run_cancellable
from hankwatch.events.activity import AssistantAction, FromCodonStart, FromToolUse, FromWatcher, ToolResult
from hankwatch.events.payload import Payload
from hankwatch.events.run import Info
from hankwatch.processes.limits import ends_within
from hankwatch.runner.ignores import Ignores
from hankwatch.runner.inside import open_inside
from hankwatch.runner.scan import Entry, Scan, is_watched, look
from hankwatch.runner.tracked import INLINE_BYTES, SETTLE_S, Content, Reporter, TrackedFiles

RESCAN_S: Final = 30.0
"""How often the workspace is looked at without being told of a change; what notifications miss waits so long."""
POLL_S: Final = 2.0
"""The same where the system cannot notify."""
_TICK_S: Final = SETTLE_S / 4
_WATCH_MS: Final = 500
"""Longest that leaving waits for the notifying thread."""
_FRESH_NS: Final = 50_000_000
"""File systems tell times in steps of some milliseconds."""
_BATCH: Final = 64
_CHUNK_BYTES: Final = 1024 * 1024


class FileTracker:
    """Emits ``file.updated`` and ``filetree.updated`` of one attempt of a codon.

    In order: ``start`` once the rig is ready, ``watching`` around the agent, ``note`` for each payload of the
    agent right after it was emitted, ``finish`` before ``codon.completed``. Without globs nothing happens.
    """

    def __init__(
        self,
        root: Path,
        files: TrackedFiles,
        *,
        emit: Callable[[Payload], object],
        clock: Clock,
    ) -> None:
        """``root`` is the workspace. ``emit`` is called on the loop's thread."""
        self._root = root
        self._files = files
        self._emit = emit
        self._clock = clock
        self._written: deque[tuple[str, str]] = deque()
        self._wake = anyio.Event()
        self._turn = anyio.Lock()
        self._stale = True
        self._folders: tuple[str, ...] = ()
        self._stop_watch = anyio.Event()
        self._notified = True
        self._unreadable: set[str] = set()

    async def start(self) -> None:
        """Tell every file that is there already, then the tree. Where it is cancelled, nothing else may follow.

        Raises:
            InfrastructureError: the journal failed.
        """
        if not self._files.globs:
            return
        async with self._turn:
            found = await self._look()
            paths = self._files.due(found, self._clock.monotonic(), final=True)
            await self._tell(paths, FromCodonStart())
            self._emit(self._files.tree())

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """While the body runs, changes are told as they settle. An error of the body leaves as it was raised.

        Raises:
            InfrastructureError: the journal failed.
        """
        if not self._files.globs:
            yield
            return
        async with task_group() as tasks:
            tasks.start_soon(self._tell_changes)
            tasks.start_soon(self._watch)
            try:
                yield
            finally:
                self._stop_watch.set()
                tasks.cancel_scope.cancel()

    def note(self, payload: Payload) -> None:
        """Hear what the agent did: the file that a call wrote is told soon after its result."""
        match payload:
            case AssistantAction():
                self._files.note_call(payload)
            case ToolResult():
                paths = self._files.note_result(payload)
                self._written.extend((path, payload.tool_use_id) for path in paths)
                if paths:
                    self._wake.set()
            case _:
                pass

    async def finish(self) -> None:
        """Tell everything that has not been told: the agent has ended, what it left stands still.

        Raises:
            InfrastructureError: the journal failed.
        """
        if self._files.globs:
            self._stale = True
            await self._sweep(final=True)

    async def _tell_changes(self) -> None:
        while True:
            await self._sweep()
            rest_s = _TICK_S if self._files.waits else RESCAN_S if self._notified else POLL_S
            if not await ends_within(self._clock, rest_s, self._wake.wait):
                self._stale = True
            self._wake = anyio.Event()

    async def _sweep(self, *, final: bool = False) -> None:
        """Tell what tools wrote, then what changed besides, then the tree if anything did."""
        async with self._turn:
            told = 0
            if self._written:
                told += await self._tell_written()
            if self._stale or self._files.waits:
                self._stale = False
                found = await self._look()
                paths = self._files.due(found, self._clock.monotonic(), final=final)
                told += await self._tell(paths, FromWatcher())
            if told:
                self._emit(self._files.tree())

    async def _tell_written(self) -> int:
        ignores, told = Ignores(self._root), 0
        while self._written:
            path, tool_use_id = self._written[0]
            if await anyio.to_thread.run_sync(is_watched, path, self._files.globs, ignores):
                told += await self._tell([path], FromToolUse(tool_use_id=tool_use_id))
            self._written.popleft()  # not before: this may have been cancelled
        return told

    async def _look(self) -> Scan:
        found = await look(self._root, self._files.globs)
        folders = tuple(found.folders)
        if folders != self._folders:
            self._folders = folders
            self._stop_watch.set()  # it starts again with the folders there are now
        for hole in found.unreadable:
            if hole.path not in self._unreadable:
                self._unreadable.add(hole.path)
                message = f"Files in {hole.path or 'the workspace'} are not watched: {hole.error}"
                self._emit(Info(message=message, code="unreadable-folder"))
        return found

    async def _tell(self, paths: Iterable[str], reporter: Reporter) -> int:
        """Read and tell these paths; how many had something new."""
        told, rest = 0, list(paths)
        while rest:
            batch, rest = rest[:_BATCH], rest[_BATCH:]
            contents = await run_cancellable(partial(_read_all, self._root, batch))
            for path, content in zip(batch, contents, strict=True):
                if (update := self._files.adopt(path, content, reporter)) is not None:
                    self._emit(update)
                    told += 1
        return told

    async def _watch(self) -> None:
        """Wake the other task when a watched folder changes; folders are watched one by one, links never."""
        while True:
            self._stop_watch = stop = anyio.Event()
            # The library takes names that are text; what lies in others is found by looking now and then.
            named = (folder for folder in self._folders if clean_text(folder) == folder)
            folders = [path for folder in named if (path := self._root / folder).is_dir()]
            try:
                await self._watch_these(folders, stop)
            except FileNotFoundError:  # a folder went away meanwhile
                await self._clock.sleep(_TICK_S)
            except (OSError, RuntimeError) as error:
                if "decode path" not in str(error):  # else a name that is no text: it has changed, no more is known
                    self._poll(error)
                    return
                await self._clock.sleep(_TICK_S)
            self._note_change()  # what changed between two watches

    async def _watch_these(self, folders: Sequence[Path], stop: anyio.Event) -> None:
        """Until ``stop``; raises what the library raises, without the group that it comes in."""
        try:
            async for _ in awatch(
                *folders,
                watch_filter=None,
                debounce=200,
                stop_event=stop,
                rust_timeout=_WATCH_MS,
                recursive=False,
                ignore_permission_denied=True,
            ):
                self._note_change()
        except ExceptionGroup as group:
            raise group.exceptions[0] from group.exceptions[0].__cause__

    def _poll(self, error: Exception) -> None:
        self._notified = False
        message = f"The system does not notify of changed files, so they are looked for every {POLL_S:g} s: {error}"
        self._emit(Info(message=message, code="files-polled"))

    def _note_change(self) -> None:
        self._stale = True
        self._wake.set()


def _read_all(root: Path, paths: Iterable[str], given_up: Callable[[], bool]) -> list[Content | None]:
    return [read_content(root, path, given_up) for path in paths]


def read_content(root: Path, path: str, given_up: Callable[[], bool] = never) -> Content | None:
    """The regular file ``path`` of the workspace as it is now; None when there is none, or once ``given_up``.

    Links are followed nowhere on the way. Blocks, for a thread.
    """
    try:
        with open_inside(root, path) as fd:
            return _content(fd, given_up)
    except PathRefused:
        return None
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return None
        return _unreadable(root / path)


def _content(fd: int, given_up: Callable[[], bool]) -> Content | None:
    facts = os.fstat(fd)
    digest, head, size_bytes = hashlib.sha256(), b"", 0
    while chunk := os.read(fd, _CHUNK_BYTES):
        if given_up():
            return None
        digest.update(chunk)
        size_bytes += len(chunk)
        if size_bytes <= INLINE_BYTES:
            head += chunk
    text = None
    if size_bytes <= INLINE_BYTES:
        with suppress(UnicodeDecodeError):
            text = head.decode("utf-8")
    # Its size as it was read: one that grew meanwhile differs from this at the next look, and so does one that was
    # written so lately that another write could bear the same time.
    is_fresh = abs(time.time_ns() - facts.st_mtime_ns) < _FRESH_NS
    return Content(Entry(size_bytes, facts.st_mtime_ns, -1 if is_fresh else facts.st_ino), digest.hexdigest(), text)


def _unreadable(path: Path) -> Content | None:
    try:
        return Content(Entry.of(path.lstat()), None, None)
    except OSError:
        return None
