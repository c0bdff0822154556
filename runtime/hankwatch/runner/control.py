"""How anything outside the run's line asks it to stop or go on: signals, keys, commands.

Nobody cancels a codon (design "How it runs" 6): a request sets the first ``StopReason`` and the turn ends
its agent; the codon's line goes on through drain, verdict and ``codon.completed``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import anyio

from hankwatch.core.errors import OrderRefused
from hankwatch.runner.rollback_plan import To


class StopReason(StrEnum):
    """Why an agent was ended early; the first one stands."""

    FORCE_STOP = "force-stop"
    """An operator or a signal: the codon fails."""
    SKIP = "skip"
    """An operator: the codon is skipped, the run goes on."""
    IDLE = "idle-timeout"
    """The agent printed nothing for its idle limit: the codon fails."""
    BUDGET = "budget"
    """A limit was reached: the codon completes or fails, as its budget says."""
    WATCHDOG = "watchdog"
    """The loop watchdog gave the agent up: the codon fails."""


KILL_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL of an agent that is ended early."""
STOP_RESERVE_S = 3.0
"""Of the stop budget, kept back from the drain for everything after it (design "How it runs" 9)."""
_SHARE = 0.3
"""Of a stop budget that is too small for the two above, what each of them gets."""


@dataclass(slots=True)
class CodonStop:
    """The stop switch of one codon."""

    reason: StopReason | None = None
    grace_s: float = KILL_GRACE_S
    """What the agent has, from SIGTERM on, to end by itself."""
    _on_stop: list[Callable[[], None]] = field(default_factory=list)

    def request(self, reason: StopReason) -> None:
        """Set the reason unless one stands already, and tell whoever runs the agent."""
        if self.reason is None:
            self.reason = reason
            for call in self._on_stop:
                call()

    def on_stop(self, call: Callable[[], None]) -> None:
        """Call once when a stop is requested; at once when it already was."""
        self._on_stop.append(call)
        if self.reason is not None:
            call()


@dataclass(slots=True)
class GoBack:
    """A rollback that a waiting run was asked for; its own line carries it out and answers."""

    to: To
    go_on: bool = False
    """Start the next codon at once instead of waiting again."""
    answer: str = ""
    refusal: Exception | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class Control:
    """The one place where requests to a live run end; used on the loop's thread."""

    stop_by_s: float | None = None
    """Monotonic instant by which a stopping run should have ended; None while none was asked to stop."""
    reserve_s: float = STOP_RESERVE_S
    """What a stopping run keeps back from its drains."""
    grace_s: float = KILL_GRACE_S
    """What a stopping run leaves its agent."""
    autostart: bool = True
    """Each codon starts by itself; else each waits for ``next``."""
    _next: anyio.Event | None = None
    """There while the run waits for ``next``."""
    _asked: "GoBack | None" = None
    _codon: CodonStop | None = None
    _on_stop: list[Callable[[], None]] = field(default_factory=list)

    @property
    def stopping(self) -> bool:
        """The run ends after the current codon's line."""
        return self.stop_by_s is not None

    def enter(self, codon: CodonStop) -> None:
        """A codon begins; it is stopped at once when the run already is."""
        self._codon = codon
        if self.stopping:
            self._stop_codon(codon)

    def leave(self) -> None:
        """The codon has ended."""
        self._codon = None

    def stop(self, *, now_s: float, budget_s: float) -> None:
        """End the run by ``now_s + budget_s``: the current codon fails, no further one starts.

        Asking twice changes nothing. A budget of less than 10 s shortens the agent's grace and the reserve too.
        """
        if self.stop_by_s is not None:
            return
        self.stop_by_s = now_s + budget_s
        self.grace_s = min(KILL_GRACE_S, _SHARE * budget_s)
        self.reserve_s = min(STOP_RESERVE_S, _SHARE * budget_s)
        if self._codon is not None:
            self._stop_codon(self._codon)
        for call in tuple(self._on_stop):
            call()

    def _stop_codon(self, codon: CodonStop) -> None:
        codon.grace_s = self.grace_s
        codon.request(StopReason.FORCE_STOP)

    @contextmanager
    def on_stop(self, call: Callable[[], None]) -> Iterator[None]:
        """While the body runs, call once when the run is asked to stop."""
        self._on_stop.append(call)
        try:
            yield
        finally:
            self._on_stop.remove(call)

    async def hold(self) -> "GoBack | None":
        """Wait for ``next``, or for the run to be asked to stop; for what else is asked, which the run answers."""
        self._next = anyio.Event()
        with self.on_stop(self._next.set):
            if not self.stopping:
                await self._next.wait()
        self._next = None
        asked, self._asked = self._asked, None
        return asked

    def next(self) -> bool:
        """Let a waiting run go on; False when it does not wait."""
        if self._next is None or self._next.is_set():
            return False
        self._next.set()
        return True

    async def go_back(self, to: To, *, go_on: bool = False) -> str:
        """Let a waiting run roll back, and then wait again or go on; says what was done.

        Raises:
            OrderRefused: it does not wait, or cannot be rolled back; why.
        """
        if not self.next():
            raise OrderRefused(
                "a rollback is for a run that waits between codons: `run --no-autostart` does before each and after"
                " a failure, with --resume also where an earlier run ended"
            )
        asked = self._asked = GoBack(to, go_on)
        await asked.answered.wait()
        if asked.refusal is not None:
            raise OrderRefused(str(asked.refusal)) from asked.refusal
        return asked.answer

    def skip(self) -> bool:
        """Skip the current codon; False when none is running."""
        return self._end_codon(StopReason.SKIP)

    def fail_codon(self) -> bool:
        """End the current codon as failed, and it alone; False when none is running."""
        return self._end_codon(StopReason.FORCE_STOP)

    def _end_codon(self, reason: StopReason) -> bool:
        if self._codon is None:
            return False
        self._codon.request(reason)
        return True
