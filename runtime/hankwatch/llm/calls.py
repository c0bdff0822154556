"""The file of the call log: written for every model call, whatever became of it."""

import os
from collections.abc import Callable
from pathlib import Path

import orjson

from hankwatch.core.files import open_folder_below, open_regular
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_json
from hankwatch.llm.call import Call


class CallLog:
    """Appends calls to a file; never fails the call it records.

    Each line is one write, made when the call has ended, so a line is there whole or not at all; what a
    crash tore off is closed by a newline before the next line. Used on the loop's thread.

    Args:
        path: The file; folders that are missing are made.
        redactor: Knows the secrets.
        on_failure: Is told why a line could not be written.
        root: No name of ``path`` below this folder may be a link. Default: the lowest folder that is there now.
    """

    def __init__(
        self, path: Path, *, redactor: Redactor, on_failure: Callable[[OSError], None], root: Path | None = None
    ) -> None:
        self._path = path.absolute()
        self._root = root.absolute() if root else next(folder for folder in self._path.parents if folder.is_dir())
        self._redactor = redactor
        self._on_failure = on_failure

    def write(self, call: Call) -> None:
        """Append the line of ``call``; a failure goes to ``on_failure`` and nowhere else."""
        line, _ = clean_json(self._redactor.data(call.line()))
        try:
            self._append(orjson.dumps(line) + b"\n")
        except OSError as error:
            self._on_failure(error)

    def _append(self, line: bytes) -> None:
        # The folder lies within the agent's reach: no link is followed and nothing that blocks is opened.
        folder = open_folder_below(self._root, self._path.parent)
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            file = open_regular(self._path.name, flags, 0o644, dir_fd=folder, sole=True)
        finally:
            os.close(folder)
        try:
            status = os.fstat(file)
            torn = status.st_size > 0 and os.pread(file, 1, status.st_size - 1) != b"\n"
            line = b"\n" + line if torn else line
            written = os.write(file, line)
            if written < len(line):
                os.ftruncate(file, status.st_size)
                raise OSError(f"{self._path} took {written} of {len(line)} bytes")
        finally:
            os.close(file)
