"""Printing from a thread of its own: a terminal or pipe that nobody reads holds up no run (design rule 2)."""

import logging
import threading
from collections import deque
from collections.abc import Callable

import anyio.to_thread

from hankwatch.core.contain import contain

_LOG = logging.getLogger(__name__)

BACKLOG = 10_000
"""Lines that wait for a slow reader; further ones are counted, the journal has them all."""
BACKLOG_BYTES = 32 * 1024 * 1024
"""What the events behind these lines may take together."""


class Screen:
    """Carries out prints in order, one at a time; ``show`` never waits."""

    def __init__(self, tell_missing: Callable[[int], None]) -> None:
        """``tell_missing`` prints how many lines were left out, once there is room again."""
        self._tell_missing = tell_missing
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], None], int]] = deque()
        self._size_bytes = 0
        self._printing = False
        self._missing = 0
        self._thread = threading.Thread(target=self._print, name="screen", daemon=True)
        self._thread.start()

    def show(self, print_it: Callable[[], None], *, size_bytes: int = 0, even_when_full: bool = False) -> None:
        """Print when it is its turn; left out when too much waits already.

        ``size_bytes`` is what ``print_it`` keeps in memory until then.
        """
        with self._changed:
            full = len(self._waiting) >= BACKLOG or self._size_bytes > BACKLOG_BYTES
            if full and not even_when_full:
                self._missing += 1
            else:
                self._waiting.append((print_it, size_bytes))
                self._size_bytes += size_bytes
                self._changed.notify_all()

    async def finish(self, *, within_s: float | None = None) -> None:
        """Wait until all was printed: as long as the reader takes, or ``within_s`` seconds."""
        await anyio.to_thread.run_sync(self._join, within_s, abandon_on_cancel=True)

    def _join(self, within_s: float | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._printing, within_s)

    def _print(self) -> None:
        while True:
            with self._changed:
                self._printing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting))
                (print_it, size_bytes), missing = self._waiting.popleft(), self._missing
                self._size_bytes -= size_bytes
                self._missing, self._printing = 0, True
            with contain(lambda error: _LOG.warning("a line could not be shown: %s", error)):
                if missing:
                    self._tell_missing(missing)
                print_it()
