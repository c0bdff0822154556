"""Files in folders that others write to as well, agents above all: nothing here waits, or touches another file.

A name there may have become anything since it was last looked at: a FIFO, whose opening waits for ever, a link
to another file, a folder. So what was opened is looked at, and no name of a new file can be foreseen.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


def open_regular(
    path: str | Path, flags: int, mode: int = 0o666, *, dir_fd: int | None = None, sole: bool = False
) -> int:
    """A descriptor of a regular file; never waits for a FIFO or device. Follows links unless ``O_NOFOLLOW`` is given.

    Args:
        path: Below ``dir_fd`` where that is given.
        flags: As of ``os.open``.
        mode: Of a file that is made.
        dir_fd: An open folder.
        sole: Refuse a file of several names (hard links): what is added to it would turn up under the others too.

    Raises:
        OSError: it cannot be opened; ``EINVAL`` for what is no regular file, ``EMLINK`` for a refused one of several names.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode, dir_fd=dir_fd)
    try:
        _check(os.fstat(fd), str(path), sole=sole)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_folder(name: str, *, dir_fd: int, create: bool) -> int:
    """A descriptor of a folder in an open one; a link is not followed.

    Raises:
        OSError: it cannot be opened; ``ELOOP`` or ``ENOTDIR`` for a link, ``FileNotFoundError`` unless it may be made.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=dir_fd)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):  # someone else made it between the two looks
        os.mkdir(name, dir_fd=dir_fd)
    return os.open(name, flags, dir_fd=dir_fd)


def open_folder_below(root: Path, folder: Path) -> int:
    """A descriptor of ``folder``, made when missing; no name below ``root``, which is trusted, may be a link.

    Raises:
        OSError: as ``open_folder``.
        ValueError: ``folder`` is not ``root`` or below it.
    """
    parts = folder.relative_to(root).parts
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in parts:
        try:
            below = open_folder(name, dir_fd=fd, create=True)
        finally:
            os.close(fd)
        fd = below
    return fd


def _check(facts: os.stat_result, shown: str, *, sole: bool) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), shown)
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", shown)
    if sole and facts.st_nlink > 1:
        raise OSError(errno.EMLINK, "Has other names (hard links)", shown)


def reading(path: Path) -> BinaryIO:
    """A regular file for reading, links followed. Raises ``OSError`` as ``open_regular``."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb")


def appending(path: Path) -> BinaryIO:
    """A regular file of one name, made when missing, for appending; no link. Raises ``OSError`` as ``open_regular``."""
    return os.fdopen(open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, sole=True), "ab")


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``; raises ``OSError`` when the disk takes no more."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def replace_at(folder: int, name: str, data: bytes, *, durable: bool = False) -> None:
    """Make ``data`` the whole content of ``name`` in an open folder: a reader sees the old or the new, never a part.

    A link of that name is replaced, not followed. With ``durable`` the content is on the disk before it has the name.

    Raises:
        OSError: it could not be written; what was there stands.
    """
    fresh = f".{token_hex(16)}.tmp"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        write_all(fd, data)
        if durable:
            os.fsync(fd)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):  # already gone; the failure that counts is the one above
            os.unlink(fresh, dir_fd=folder)
        raise
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """``replace_at`` for a path whose folder is there; a ``durable`` one survives a crash of the machine on return."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_at(folder, path.name, data, durable=durable)
        if durable:
            os.fsync(folder)
    finally:
        os.close(folder)
