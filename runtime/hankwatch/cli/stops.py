"""Stop signals of a run's process: the first ends the run in order, the second at once, the clock ends both."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.abc

from hankwatch.app import LiveRun
from hankwatch.runner.backstop import Backstop
from hankwatch.runner.signals import heard

INTERRUPTED = 130
"""Exit code of a run that a signal ended."""
AT_ONCE_S = 1.0
"""What everything has to react to its cancellation after the second signal."""


@dataclass(slots=True)
class Stops:
    """Takes SIGINT, SIGTERM and SIGHUP for one run; ``watch`` runs beside it."""

    tell: Callable[[str], None]
    """Shows a line to people; never waits."""
    at_once: anyio.CancelScope
    """Cancelled by the second signal, or by the first while no run is under way."""
    give_back: Callable[[], None]
    """Makes the terminal as it was before the process ends by force; called by any thread."""
    count: int = 0
    """Signals and keys so far."""
    _live: LiveRun | None = None
    _exit_code: int | None = None
    _backstop: Backstop = field(init=False)

    def __post_init__(self) -> None:
        self._backstop = Backstop(
            self._last_word,
            runs=lambda: [self._live.run_id] if self._live is not None else [],
            exit_code=lambda: INTERRUPTED if self.count or self._exit_code is None else self._exit_code,
        )

    def began(self, live: LiveRun) -> None:
        """From now on a signal stops this run."""
        self._live = live

    def ended(self, exit_code: int) -> None:
        """The run has its result; what is still open has the stop budget to close."""
        self._exit_code = exit_code
        if self._live is not None:
            self._backstop.within(self._live.settings.run.stop_budget_s)

    def closed(self) -> None:
        """All is closed; only what is still to be read may take its time, unless a signal came."""
        if not self.count:
            self._backstop.disarm()

    def leave(self) -> None:
        """Ends the process here when a signal asked for it, else returns."""
        if self.count:
            # Taking a provider's library apart costs a second that a stop does not have. The backstop stays:
            # a flush waits for a reader that may never read again.
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):  # nobody reads it any more
                    stream.flush()
            os._exit(INTERRUPTED)

    async def watch(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Act on signals until cancelled."""
        hangup = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []  # nohup
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            live = self._count()
            with suppress(RuntimeError):  # the loop is closed: nothing is left that could be stopped in order
                loop.call_soon_threadsafe(self._act, live)

        with heard([signal.SIGINT, signal.SIGTERM, *hangup], on_signal):
            task_status.started()
            await anyio.sleep_forever()

    def ask(self) -> None:
        """A key was pressed that means the same as a signal."""
        self._act(self._count())

    def _count(self) -> LiveRun | None:
        """The run to stop in order, or None to end at once; the process ends in time even if the loop stands still.

        Called by any thread.
        """
        self.count += 1
        live = self._live if self._exit_code is None and self.count == 1 else None
        self._backstop.within(AT_ONCE_S if live is None else live.settings.run.stop_budget_s)
        return live

    def _act(self, live: LiveRun | None) -> None:
        if live is None:
            self.at_once.cancel()
            return
        live.stop()
        budget_s = live.settings.run.stop_budget_s
        self.tell(f"Stopping: the agent is ended, sentinels finish, at most {budget_s:g} s. Again to stop at once.")

    def _last_word(self) -> str:
        self.give_back()
        if self._live is None:
            return f"Ended by force before the run began (process {os.getpid()})."
        journal = self._live.execution.layout.journal
        return f"Ended by force: something did not react in time. Its processes were ended; the journal is whole: {journal}"
