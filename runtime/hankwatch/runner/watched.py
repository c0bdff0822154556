"""What the loop watchdog of an attempt gets to see of its agent (spec watchdog 0)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from hankwatch.agents.signals import Streamed
from hankwatch.core.contain import contain
from hankwatch.events.envelope import Event
from hankwatch.runner.steering import AgentSteering
from hankwatch.stream.stream import EventStream
from hankwatch.watchdog import Watchdog


@dataclass(slots=True)
class Watched:
    """An agent under a watchdog, which looks away while the agent is about to stop."""

    watchdog: Watchdog
    steering: AgentSteering
    stream: EventStream
    on_blind: Callable[[Exception], None]
    """Called once, when the watchdog fails over what the agent streams; it goes on with whole events."""
    _is_blind: bool = False

    @contextmanager
    def listening(self, name: str) -> Iterator[None]:
        """Within it, the watchdog listens to the stream's events."""
        leave = self.stream.subscribe(self._happened, name=name)
        try:
            yield
        finally:
            leave()

    def streamed(self, piece: Streamed) -> None:
        """A piece of a message that comes whole later."""
        if self._is_blind or self.steering.is_stopping:
            return
        with contain(self._go_blind):
            channel: Literal["thinking", "text"] = "thinking" if piece.kind == "thinking" else "text"
            self.watchdog.delta(channel, piece.text, self.stream.now_ms() / 1000)

    def _happened(self, event: Event) -> None:
        if not self.steering.is_stopping:
            self.watchdog.on_event(event)

    def _go_blind(self, error: Exception) -> None:
        self._is_blind = True
        self.on_blind(error)
