"""Copying files and folders without following links, all or nothing where it counts."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from hankwatch.core.errors import PathRefused

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Never waits for a FIFO or device, never follows a link."""


class Interrupted(Exception):
    """Whoever asked for the copy does not want it any more."""


def open_regular(path: Path) -> int:
    """A descriptor for reading a regular file.

    Raises:
        PathRefused: it is something else.
        OSError: it cannot be opened.
    """
    fd = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise PathRefused(path.name, "is not a regular file")
    return fd


def copy_tree(source: Path, target: Path, *, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Copy a file or folder to ``target``, which must not exist; contents and permission bits, not times.

    Blocks: for a thread. ``goes_on`` is asked before each file.

    Raises:
        PathRefused: ``source`` holds a symbolic link or something that is neither file nor folder.
        OSError: reading or writing failed; what was copied by then is left.
        Interrupted: ``goes_on`` said no.
    """
    if not goes_on():
        raise Interrupted
    mode = source.lstat().st_mode
    if stat.S_ISDIR(mode):
        target.mkdir()
        for name in sorted(os.listdir(source)):  # noqa: PTH208 - names suffice
            copy_tree(source / name, target / name, goes_on=goes_on)
        target.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)  # a folder that cannot be entered could not be removed
    elif stat.S_ISLNK(mode):
        raise PathRefused(source.name, "is a symbolic link; links are not copied")
    else:
        _copy_file(source, target)


def _copy_file(source: Path, target: Path) -> None:
    fd = open_regular(source)
    with os.fdopen(fd, "rb") as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing, 1024 * 1024)
        os.fchmod(writing.fileno(), stat.S_IMODE(os.fstat(fd).st_mode))


def replace_with_copy(source: Path, target: Path, *, staging: Path, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Copy ``source`` to ``target``; what is there is removed once the copy is complete.

    ``staging`` is a folder that may be made, where the copy grows. Raises as ``copy_tree``; ``target`` is as
    it was then, unless taking its place failed.
    """
    staging.mkdir(parents=True, exist_ok=True)
    grown = staging / uuid4().hex
    try:
        copy_tree(source, grown, goes_on=goes_on)
        remove(target)
        shutil.move(grown, target)
    finally:
        remove(grown)


def remove(path: Path) -> None:
    """Remove a file, link or whole folder; nothing when it is not there. Links are not followed.

    Raises:
        OSError: something of it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
