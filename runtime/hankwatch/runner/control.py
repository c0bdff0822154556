"""How anything outside the run's line asks it to stop or go on: signals today, keys and commands later.

Nobody cancels a codon (design "How it runs" 6): a request sets the first ``StopReason`` and the turn ends
its agent; the codon's line goes on through drain, verdict and ``codon.completed``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum


class StopReason(StrEnum):
    """Why an agent was ended early; the first one stands."""

    FORCE_STOP = "force-stop"
    """An operator or a signal: the codon fails."""
    SKIP = "skip"
    """An operator: the codon is skipped, the run goes on."""
    IDLE = "idle-timeout"
    """The agent printed nothing for its idle limit: the codon fails."""


@dataclass(slots=True)
class CodonStop:
    """The stop switch of one codon."""

    reason: StopReason | None = None
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
class Control:
    """The one place where requests to a live run end; used on the loop's thread."""

    stop_by_s: float | None = None
    """Monotonic instant by which a stopping run should have ended; None while none was asked to stop."""
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
            codon.request(StopReason.FORCE_STOP)

    def leave(self) -> None:
        """The codon has ended."""
        self._codon = None

    def stop(self, *, by_s: float) -> None:
        """End the run: the current codon fails, no further one starts. Asking twice changes nothing."""
        if self.stop_by_s is None:
            self.stop_by_s = by_s
            if self._codon is not None:
                self._codon.request(StopReason.FORCE_STOP)
            for call in tuple(self._on_stop):
                call()

    @contextmanager
    def on_stop(self, call: Callable[[], None]) -> Iterator[None]:
        """While the body runs, call once when the run is asked to stop."""
        self._on_stop.append(call)
        try:
            yield
        finally:
            self._on_stop.remove(call)

    def skip(self) -> bool:
        """Skip the current codon; False when none is running."""
        if self._codon is None:
            return False
        self._codon.request(StopReason.SKIP)
        return True
