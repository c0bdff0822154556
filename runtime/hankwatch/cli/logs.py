"""What the rooms log, on stderr: warnings always, details with ``-v``, errors alone with ``-q``."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hankwatch.core.text import strip_controls


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return strip_controls(super().format(record))


def configure(verbosity: int) -> None:
    """Show the package's own log lines; those of other packages keep to Python's default."""
    level = {-1: logging.ERROR, 0: logging.WARNING}.get(verbosity, logging.INFO)
    handler = logging.StreamHandler()
    handler.setLevel(level)  # the logger's own is lowered by a run for its log file
    handler.setFormatter(_Plain("%(levelname)s: %(message)s"))
    logger = logging.getLogger("hankwatch")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)


class _Handed(logging.Handler):
    def __init__(self, hand_over: Callable[[str], None]) -> None:
        super().__init__()
        self._hand_over = hand_over

    def emit(self, record: logging.LogRecord) -> None:
        self._hand_over(self.format(record))


@contextmanager
def handed_to(hand_over: Callable[[str], None]) -> Iterator[None]:
    """While the body runs, log lines go there instead of to stderr; from any thread."""
    logger = logging.getLogger("hankwatch")
    before = logger.handlers
    handler = _Handed(hand_over)
    handler.setLevel(before[0].level if before else logging.WARNING)
    handler.setFormatter(_Plain("%(levelname)s: %(message)s"))
    # The others stay: the run's own log file is among them.
    logger.handlers = [handler, *before[1:]]
    try:
        yield
    finally:
        logger.handlers = [*before[:1], *(kept for kept in logger.handlers if kept is not handler)]
