"""Stop signals of a run's process: the first ends the run in order, the second at once, the clock ends both."""

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
    count: int = 0
    """Signals so far."""
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
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as signals:
            task_status.started()
            async for _ in signals:
                self.count += 1
                self._act()

    def _act(self) -> None:
        if self._live is None or self._exit_code is not None or self.count > 1:
            self._backstop.within(AT_ONCE_S)
            self.at_once.cancel()
            return
        budget_s = self._live.settings.run.stop_budget_s
        self._backstop.within(budget_s)
        self._live.stop()
        self.tell(f"Stopping: the agent is ended, sentinels finish, at most {budget_s:g} s. Again to stop at once.")

    def _last_word(self) -> str:
        if self._live is None:
            return f"Ended by force before the run began (process {os.getpid()})."
        journal = self._live.execution.layout.journal
        return f"Ended by force: something did not react in time. Its processes were ended; the journal is whole: {journal}"
