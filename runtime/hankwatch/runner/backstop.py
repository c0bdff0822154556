"""The end of this process when nothing else ends it (design rule 9)."""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import anyio

from hankwatch.core.clock import SystemClock
from hankwatch.processes.tree import kill_marked


class Backstop:
    """Ends the process at the earliest instant it was given, whatever holds the event loop or swallows its cancellation.

    For the owner of a process only. The children of its runs are ended first; the journal is whole, as it is
    after kill -9. Any thread may call.
    """

    def __init__(
        self, last_word: Callable[[], str], *, runs: Callable[[], list[str]], exit_code: Callable[[], int]
    ) -> None:
        """Asked at the end: what to write to stderr, whose children to end, and the exit code."""
        self._last_word = last_word
        self._runs = runs
        self._exit_code = exit_code
        self._due = float("inf")
        self._timer: threading.Timer | None = None

    def within(self, seconds: float) -> None:
        """End the process in ``seconds`` unless it ends before; a later instant than one given already changes nothing."""
        due = time.monotonic() + seconds
        if due >= self._due:
            return
        self.disarm()
        self._due, self._timer = due, threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def disarm(self) -> None:
        """The process ends by itself."""
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = float("inf"), None

    def _end(self) -> None:
        for run in self._runs():
            anyio.run(partial(kill_marked, run, clock=SystemClock()))
        with suppress(OSError):  # nobody reads; that may be why we are here
            os.set_blocking(sys.stderr.fileno(), False)
            os.write(sys.stderr.fileno(), f"{self._last_word()}\n".encode())
        os._exit(self._exit_code())
