"""What this process has to say about its own work: ``.hankweave/logs/runtime.log``."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

from hankwatch.core.files import appending
from hankwatch.core.redaction import Redactor

_LOGGER = logging.getLogger("hankwatch")


class _RunLog(logging.FileHandler):
    def __init__(self, path: Path, redactor: Redactor) -> None:
        super().__init__(path, encoding="utf-8", errors="replace", delay=True)
        self.setLevel(logging.INFO)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._redactor = redactor

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(appending(Path(self.baseFilename)), encoding=self.encoding, errors=self.errors)

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # the file cannot be opened; the base class guards only the writing
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the inherited name
        """Nothing: on a full disk this would be the second failure, and hide the first."""


@contextmanager
def run_log(path: Path, redactor: Redactor) -> Iterator[None]:
    """While the body runs, what any room logs goes to ``path`` too, redacted. The file is made when needed."""
    handler, level = _RunLog(path, redactor), _LOGGER.level
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)
        with suppress(OSError):  # what could not be written is not written now either
            handler.close()
