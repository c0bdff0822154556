"""The raw lines of an agent, kept for whoever has to look closer (spec hank 2)."""

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from hankwatch.core.files import appending
from hankwatch.core.redaction import Redactor
from hankwatch.processes.lines import Line


class RawLog:
    """One turn's lines, redacted, appended to a file; used as ``with``.

    A log that cannot be written is given up, the turn goes on: events are the truth of a run, this is not.
    ``keep`` may be called from another thread, one call at a time.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.failure: str | None = None
        """Why lines are missing, or None while all are kept."""
        self._path = path
        self._redactor = redactor
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = appending(self._path)
        except OSError as error:
            self.failure = str(error)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file is not None:
            with suppress(OSError):  # what could not be flushed has been told
                self._file.close()

    def keep(self, line: Line) -> None:
        """Append one line, or what is said instead of one that is too long."""
        if self._file is None or self.failure is not None:
            return
        data = line.data if line.stub is None else str(line.stub).encode()
        if self._redactor.suspects(data):
            data = self._redactor.text(data.decode("utf-8", "replace")).encode("utf-8", "replace")
        try:
            self._file.write(data + b"\n")
            self._file.flush()
        except OSError as error:
            self.failure = str(error)
