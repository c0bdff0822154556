"""A strategy on a stream's timers: matches go in, batches come out, now or when they are due (spec sentinels 4)."""

from collections.abc import Callable

from hankwatch.core.clock import Timer, Timers
from hankwatch.core.contain import contain
from hankwatch.events.envelope import Event
from hankwatch.sentinels.strategies import Batch, Execution, make_strategy


class Gatherer:
    """Gathers the matches of one sentinel into batches; keeps at most one timer, whatever the strategy."""

    def __init__(
        self,
        execution: Execution,
        timers: Timers,
        *,
        on_due: Callable[[list[Batch]], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """``on_due`` takes the batches of a timer; what it or the strategy raises then goes to ``on_failure``."""
        self._strategy = make_strategy(execution)
        self._timers = timers
        self._on_due = on_due
        self._on_failure = on_failure
        self._timer: Timer | None = None

    def on_match(self, events: tuple[Event, ...], at_ms: int) -> list[Batch]:
        """The batches that this match fires at once."""
        batches = self._strategy.on_match(events, at_ms)
        self._arm()
        return batches

    def drain(self, at_ms: int) -> list[Batch]:
        """What is held, as final batches."""
        return self._strategy.drain(at_ms)

    def stop(self) -> None:
        """No timer of it runs any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run_due(self, at_ms: int) -> None:
        self._timer = None
        with contain(self._on_failure):
            due_ms = self._strategy.next_due_ms()
            if due_ms is not None and due_ms <= at_ms:
                self._on_due(self._strategy.on_due(at_ms))
            self._arm()

    def _arm(self) -> None:
        """See to it that a timer runs no later than the strategy's next instant.

        A timer that turns out too early re-arms itself: a debounce under a steady stream keeps one timer
        instead of one per match.
        """
        due_ms = self._strategy.next_due_ms()
        if due_ms is None or (self._timer is not None and self._timer.due_ms <= due_ms):
            return
        self.stop()
        self._timer = self._timers.at(due_ms, self._run_due)
