"""What stands in the workspace now: the files that globs take and gitignore leaves."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hankwatch.core.text import clean_text
from hankwatch.core.threads import never, run_cancellable
from hankwatch.events.shapes import PathError
from hankwatch.runner.execution import DATA_FOLDER
from hankwatch.runner.globs import Globs
from hankwatch.runner.ignores import Ignores


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link as the file system tells of it; equal means nothing changed."""

    size_bytes: int
    mtime_ns: int
    inode: int
    is_link: bool = False

    @classmethod
    def of(cls, facts: os.stat_result) -> "Entry":
        """From ``lstat`` or ``fstat``."""
        return cls(facts.st_size, facts.st_mtime_ns, facts.st_ino, stat.S_ISLNK(facts.st_mode))


@dataclass(slots=True)
class Scan:
    """One look at the workspace."""

    files: dict[str, Entry] = field(default_factory=dict)
    """By path relative to the workspace, in order; links are in it and were not followed."""
    folders: list[str] = field(default_factory=list)
    """Every folder that was looked into; the empty name is the workspace."""
    unreadable: list[PathError] = field(default_factory=list)
    """Folders that could not be looked into."""

    def covers(self, path: str) -> bool:
        """Whether ``path`` would be in ``files`` if it were there: False below an unreadable folder."""
        return not any(path.startswith(f"{hole.path}/") or not hole.path for hole in self.unreadable)


async def look(root: Path, globs: Globs, *, gitignore: bool = True) -> Scan:
    """``scan`` in a thread; cancelling this ends it, however large the workspace is."""
    return await run_cancellable(partial(scan, root, globs, gitignore=gitignore))


def scan(root: Path, globs: Globs, given_up: Callable[[], bool] = never, *, gitignore: bool = True) -> Scan:
    """Look at the workspace; blocks, for a thread. Folders where nothing can match are not entered.

    Without ``gitignore`` what it leaves out is in. What was found is incomplete once ``given_up``.

    Never in it: what is named ``.git`` (the agents' own repositories), the data, FIFOs, sockets and devices.
    """
    found, ignores = Scan(), Ignores(root) if gitignore else None
    waiting = [""]
    while waiting and not given_up():
        folder = waiting.pop()
        try:
            entries = sorted(_entries(root / folder, given_up), key=lambda pair: pair[0], reverse=True)
        except FileNotFoundError:  # went away meanwhile
            continue
        except OSError as error:
            found.unreadable.append(PathError(path=clean_text(folder), error=error.strerror or str(error)))
            continue
        found.folders.append(folder)
        for name, facts in entries:
            path = f"{folder}/{name}" if folder else name
            if not _is_agents(path):
                continue
            if stat.S_ISDIR(facts.st_mode):
                if globs.reach(path) and not (ignores and ignores.ignored(path, is_folder=True)):
                    waiting.append(path)
            elif _is_kept(facts) and globs.match(path) and not (ignores and ignores.ignored(path)):
                found.files[path] = Entry.of(facts)
    found.files = dict(sorted(found.files.items()))
    return found


def is_watched(path: str, globs: Globs, ignores: Ignores) -> bool:
    """Whether a scan would find the file ``path`` if it is there."""
    above = path.split("/")[:-1]
    folders = ["/".join(above[:depth]) for depth in range(1, len(above) + 1)]
    return globs.match(path) and all(map(_is_agents, (*folders, path))) and not ignores.ignored(path)


def _is_agents(path: str) -> bool:
    """Neither a repository's own folder nor the data."""
    return path.rpartition("/")[2].lower() != ".git" and path != DATA_FOLDER


def _entries(folder: Path, given_up: Callable[[], bool]) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if given_up():
                return
            try:
                yield entry.name, entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue


def _is_kept(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
