"""``archiveOnSuccess``: what a codon is done with is moved out of the workspace (reference 2.2, 3.7).

A move is first written to the manifest, then done by one rename, then noted as done. Whatever kills the process in
between, each file is in the workspace or in the archive, and the manifest knows which.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic.alias_generators import to_camel

from hankwatch.core.errors import PathRefused
from hankwatch.core.text import clean_text
from hankwatch.events.run import ArchiveCompleted, ArchivePartial
from hankwatch.events.shapes import PathError
from hankwatch.runner.durable import read_json, write_json
from hankwatch.runner.execution import DATA_FOLDER
from hankwatch.runner.globs import Globs
from hankwatch.runner.layout import Layout

FOLDER: Final = "rigArchive"
"""Below the execution directory, beside the workspace."""
VERSION: Final = 1
_MAX_COPIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose files are archived: an attempt of a codon, or a loop that has ended."""

    run_id: str
    id: str
    """Runtime id of the codon, or the loop's id."""
    folder: str
    """Below the archive; from ``codon_folder`` or ``loop_folder``."""


def codon_folder(base_codon_id: str, *, loop_id: str | None = None, iteration: int = 0) -> str:
    """``<codonId>``, in loops ``<loopId>-<n>/<codonId>``."""
    own = _component(base_codon_id)
    return own if loop_id is None else f"{_component(f'{loop_id}-{iteration}')}/{own}"


def loop_folder(loop_id: str) -> str:
    """``<loopId>-loop``."""
    return _component(f"{loop_id}-loop")


def _component(name: str) -> str:
    """An id as one path component: ids have no separators, but may be dots."""
    return name if name.strip(".") else f"_{name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One archived file or folder, as the manifest has it; paths are relative to the execution directory."""

    run_id: str
    owner_id: str
    path: str
    """Relative to the workspace: where it came from."""
    source: str
    target: str
    state: Literal["moving", "archived"]
    at_ms: int


@dataclass(frozen=True, slots=True)
class ArchiveEnd:
    """What became of one owner's archive."""

    archived: tuple[str, ...]
    """Paths relative to the workspace, those that an earlier call of this owner moved included."""
    failed: tuple[PathError, ...]

    def payload(self, codon_id: str, base_codon_id: str | None = None) -> ArchiveCompleted | ArchivePartial | None:
        """The event that tells it; None when there was nothing to archive."""
        if not self.archived and not self.failed:
            return None
        paths = [clean_text(path) for path in self.archived]
        if not self.failed:
            return ArchiveCompleted(codon_id=codon_id, base_codon_id=base_codon_id, archived_paths=paths)
        return ArchivePartial(
            codon_id=codon_id, base_codon_id=base_codon_id, archived_paths=paths, failed_paths=list(self.failed)
        )


class Archive:
    """The archive of one execution; used by the holder of its lock. Everything blocks: for a thread."""

    def __init__(self, layout: Layout) -> None:
        """Reads the manifest and finishes moves that a killed process had begun.

        Raises:
            OSError: the manifest cannot be read or written.
        """
        self._layout = layout
        self._manifest = layout.managed / "archive-manifest.json"
        self.damaged: Path | None = None
        """Where a manifest that was no JSON has been put aside; what it listed is not known."""
        try:
            rows = read_json(self._manifest)
        except ValueError:
            rows = None
            self.damaged = self._manifest.with_name(f"{self._manifest.name}.damaged")
            self._manifest.replace(self.damaged)
        self._entries = list(_read(rows))
        if any(entry.state == "moving" for entry in self._entries):
            self._finish()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All that is archived, oldest first."""
        return tuple(self._entries)

    def archive(self, owner: Owner, patterns: Sequence[str], at_ms: int) -> ArchiveEnd:
        """Move what ``patterns`` name in the workspace to the owner's folder; gitignore does not matter.

        A folder that matches is moved whole, a link as the link it is, and nothing is followed. What stands at a
        target already is kept: the newcomer gets a number. The agents' ``.git`` and the data stay.

        Raises:
            OSError: the manifest could not be written; what was moved by then is settled by the next process.
        """
        refused = [PathError(path=pattern, error="leaves the workspace") for pattern in patterns if _climbs(pattern)]
        globs = Globs(pattern for pattern in patterns if not _climbs(pattern))
        chosen = list(_chosen(self._layout.agent_root, globs, refused))
        begun: list[Entry] = []
        for path in chosen:
            source = f"{self._layout.agent_root.name}/{path}"
            target = self._free(f"{FOLDER}/{owner.folder}/{path}", {entry.target for entry in begun})
            begun.append(Entry(owner.run_id, owner.id, path, source, target, "moving", at_ms))
        if begun:
            self._write([*self._entries, *begun])
        failed = [failure for entry in begun if (failure := self._move(entry)) is not None]
        if begun:
            self._finish(retry=False)
        mine = [entry.path for entry in self._entries if (entry.run_id, entry.owner_id) == (owner.run_id, owner.id)]
        return ArchiveEnd(tuple(mine), (*refused, *failed))

    def forget(self, gone: Iterable[Entry]) -> None:
        """Take entries out of the manifest: a rollback has put their files back.

        Raises:
            OSError: the manifest could not be written.
        """
        dropped = set(gone)
        if dropped.intersection(self._entries):
            self._write([entry for entry in self._entries if entry not in dropped])

    def _finish(self, *, retry: bool = True) -> None:
        """Settle every entry that is not known to be done by what stands where."""
        settled = []
        for entry in self._entries:
            if entry.state == "moving" and retry:
                self._move(entry)
            if entry.state == "archived":
                settled.append(entry)
            elif os.path.lexists(self._layout.root / entry.target):
                settled.append(replace(entry, state="archived"))
        self._write(settled)

    def _move(self, entry: Entry) -> PathError | None:
        """One rename; None when the file is in the archive then, or there is no such file."""
        source, target = self._layout.root / entry.source, self._layout.root / entry.target
        if os.path.lexists(target) or not os.path.lexists(source):
            return None
        try:
            _make_folders(self._layout.root, entry.target)
            source.rename(target)
        except (OSError, PathRefused) as error:
            return PathError(path=clean_text(entry.path), error=str(error))
        return None

    def _free(self, target: str, taken: set[str]) -> str:
        names = (target, *(f"{target}~{number}" for number in range(1, _MAX_COPIES)))
        return next(name for name in names if name not in taken and not os.path.lexists(self._layout.root / name))

    def _write(self, entries: list[Entry]) -> None:
        write_json(self._manifest, {"version": VERSION, "entries": [_row(entry) for entry in entries]})
        self._entries = entries


def _climbs(pattern: str) -> bool:
    return pattern.startswith("/") or ".." in pattern.split("/")


def _chosen(root: Path, globs: Globs, failed: list[PathError], folder: str = "") -> Iterator[str]:
    """What matches, topmost only; folders that cannot be read are added to ``failed``."""
    if not globs.reach(folder):
        return
    try:
        with os.scandir(root / folder) as entries:
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        failed.append(PathError(path=clean_text(folder), error=str(error)))
        return
    for name, is_folder in found:
        path = f"{folder}/{name}" if folder else name
        if name.lower() == ".git" or path == DATA_FOLDER:
            continue
        if globs.match(path):
            yield path
        elif is_folder:
            yield from _chosen(root, globs, failed, path)


def _make_folders(root: Path, target: str) -> None:
    """The folders above ``target``, none of them a link that leads elsewhere."""
    folder = root
    for part in target.split("/")[:-1]:
        folder /= part
        if folder.is_symlink():
            raise PathRefused(target, f"goes through the symbolic link {part!r}; links are not followed")
        folder.mkdir(exist_ok=True)


def _row(entry: Entry) -> dict[str, Any]:
    return {to_camel(key): value for key, value in asdict(entry).items()}


def _read(manifest: Any) -> Iterator[Entry]:
    rows = manifest.get("entries") if isinstance(manifest, dict) else None
    names = {to_camel(field.name): field.name for field in fields(Entry)}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.keys() == names.keys():  # else of another runtime
            yield Entry(**{names[key]: value for key, value in row.items()})
