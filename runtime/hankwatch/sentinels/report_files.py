"""Where a report may be, and touching the file there without following a link (spec sentinels 9, bugs A16)."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hankwatch.config.refs import check_ref
from hankwatch.core.errors import PathRefused
from hankwatch.core.files import open_folder, open_regular, replace_at

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class ReportPath:
    """A report file as directory names below a root that is trusted; every name is looked up without links."""

    root: Path
    parts: tuple[str, ...]
    shown: str
    """As the journal names it: relative to the execution directory where it lies inside."""

    @property
    def path(self) -> Path:
        """The whole path, for people; opening goes component by component instead."""
        return self.root.joinpath(*self.parts)


@dataclass(frozen=True, slots=True)
class ReportPlaces:
    """The two places reports may be in: the sentinel's own folder and the agent's root."""

    managed_dir: Path
    agent_root: Path

    @property
    def execution_dir(self) -> Path:
        return self.managed_dir.parent

    def resolve(self, name: str, sentinel_id: str) -> ReportPath:
        """Where the report ``name`` of a sentinel goes; raises ``PathRefused`` with the rule that was broken.

        A bare name goes to ``sentinels/outputs/<id>/`` of the managed folder, one with ``/`` into the agent's
        root, never into the managed folder there.
        """
        fault = check_ref(name)
        if fault is not None:
            raise PathRefused(name, fault)
        parts = _normal(name)
        if "/" not in name:
            return self._shown(self.execution_dir, (self.managed_dir.name, "sentinels", "outputs", sentinel_id, *parts))
        if self.managed_dir.name in parts:
            raise PathRefused(name, f"leads into {self.managed_dir.name}/, which is the runtime's own")
        return self._shown(self.agent_root, parts)

    def _shown(self, root: Path, parts: tuple[str, ...]) -> ReportPath:
        path = root.joinpath(*parts)
        inside = path.is_relative_to(self.execution_dir)
        return ReportPath(root, parts, (path.relative_to(self.execution_dir) if inside else path).as_posix())


def recorded_path(execution_dir: Path, shown: str) -> ReportPath:
    """The file that a journal names; raises ``PathRefused`` when it is not inside the execution directory."""
    fault = check_ref(shown)
    if fault is not None:
        raise PathRefused(shown, fault)
    return ReportPath(execution_dir, _normal(shown), shown)


def default_name(sentinel_id: str, codon_id: str, at_ms: int, suffix: str) -> str:
    """``<id>-<codonId>-<epoch ms><suffix>``, characters that are unsafe in file names as ``-``."""
    return safe_name(f"{sentinel_id}-{codon_id}-{at_ms}") + suffix


def safe_name(text: str) -> str:
    """``text`` as part of a file name: characters that are unsafe there as ``-``."""
    return _UNSAFE.sub("-", text)


@contextmanager
def opened(path: ReportPath, *, create: bool) -> Iterator[int | None]:
    """A descriptor for reading and appending, or None when the file is missing and ``create`` is false.

    Raises ``PathRefused`` for a link, symbolic or hard, or anything but a regular file on the way, ``OSError``
    for the rest. A file of several names is refused because each entry would go into the others too; copying
    it instead would let whoever made the link decide how much is copied before each entry.
    """
    with _parent(path, create=create) as parent:
        if parent is None:
            yield None
            return
        with _file(path, parent, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0), sole=True) as fd:
            yield fd


@contextmanager
def opened_to_read(path: ReportPath) -> Iterator[int | None]:
    """A descriptor for reading, or None when the file is missing. Raises as ``opened``, but takes hard links."""
    with _parent(path, create=False) as parent:
        if parent is None:
            yield None
            return
        with _file(path, parent, os.O_RDONLY, sole=False) as fd:
            yield fd


def replace(path: ReportPath, data: bytes) -> None:
    """Make ``data`` the whole content, atomically: a reader sees the old or the new, never a part.

    Raises as ``opened``; a link of that name, symbolic or hard, is replaced and what it led to stays.
    """
    with _parent(path, create=True) as parent:
        assert parent is not None
        replace_at(parent, path.parts[-1], data)


@contextmanager
def _file(path: ReportPath, parent: int, flags: int, *, sole: bool) -> Iterator[int | None]:
    name = path.parts[-1]
    try:
        fd = open_regular(name, flags | os.O_NOFOLLOW, dir_fd=parent, sole=sole)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _refused(path, name, error) from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _parent(path: ReportPath, *, create: bool) -> Iterator[int | None]:
    """The directory of the file, opened name by name; None when it is missing and must not be made."""
    fd = os.open(path.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in path.parts[:-1]:
            try:
                below = open_folder(name, dir_fd=fd, create=create)
            except FileNotFoundError:
                yield None
                return
            except OSError as error:
                raise _refused(path, name, error) from None
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _refused(path: ReportPath, name: str, error: OSError) -> Exception:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return PathRefused(path.shown, f"{name!r} is a symbolic link or not what it should be; links are not followed")
    if error.errno in {errno.EISDIR, errno.ENXIO, errno.EINVAL}:
        return PathRefused(path.shown, f"{name!r} is not a regular file")
    if error.errno == errno.EMLINK:
        return PathRefused(path.shown, f"{name!r} is another file too (a hard link), which entries would go into")
    return error


def _normal(name: str) -> tuple[str, ...]:
    parts: list[str] = []
    for part in name.split("/"):
        if part == "..":
            if not parts:
                raise PathRefused(name, "climbs above the folder that reports may be in")
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if not parts or name.endswith(("/", "/.", "/..")):
        raise PathRefused(name, "names a directory, not a file")
    return tuple(parts)
