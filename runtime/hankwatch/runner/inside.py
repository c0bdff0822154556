"""Files inside a root, reached component by component without following a link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hankwatch.core.errors import PathRefused

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_inside(root: Path, path: str) -> Iterator[int]:
    """A descriptor for reading the regular file ``path`` below ``root``, closed by leaving.

    Never waits for a FIFO or device.

    Raises:
        PathRefused: it is no regular file.
        OSError: it or a folder above it is not there, is a link, or may not be read.
    """
    *folders, name = path.split("/")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            fd = _step(fd, folder, os.O_DIRECTORY)
        fd = _step(fd, name, os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise PathRefused(path, "is not a regular file")
        yield fd
    finally:
        os.close(fd)


def _step(fd: int, name: str, flags: int) -> int:
    """Open ``name`` in the folder ``fd``, which is closed once that has worked."""
    opened = os.open(name, _FLAGS | flags, dir_fd=fd)
    os.close(fd)
    return opened
