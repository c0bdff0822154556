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
        self._lock = threading.Lock()

    def within(self, seconds: float) -> None:
        """End the process in ``seconds`` unless it ends before; a later instant than one given already changes nothing."""
        due = time.monotonic() + seconds
        with self._lock:
            if due >= self._due:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._due, self._timer = due, threading.Timer(seconds, self._end)
            self._timer.daemon = True
            self._timer.start()

    def disarm(self) -> None:
        """The process ends by itself."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._due, self._timer = float("inf"), None

    def _end(self) -> None:
        try:
            for run in self._runs():
                anyio.run(partial(kill_marked, run, clock=SystemClock()))
            with suppress(OSError):  # nobody reads; that may be why we are here
                os.set_blocking(sys.stderr.fileno(), False)
                os.write(sys.stderr.fileno(), f"{self._last_word()}\n".encode())
        finally:  # whatever failed above: a process without threads or descriptors left ends too
            os._exit(self._exit_code())
