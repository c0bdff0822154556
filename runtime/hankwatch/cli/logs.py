"""What the rooms log, on stderr: warnings always, details with ``-v``, errors alone with ``-q``."""

import logging

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
