"""``try``: what a sentinel would do on recorded events, in virtual time, without asking a model (spec cli)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hankwatch.bench.sources import Source
from hankwatch.core.clock import StreamTime, Timer, Timers
from hankwatch.core.errors import InfrastructureError
from hankwatch.core.redaction import Redactor
from hankwatch.events.catalogue import routing
from hankwatch.events.envelope import Event, IdSource, Routing, format_stamp
from hankwatch.matching.triggers import TriggerIndex
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.prompts import CodonScope, Prompts, render_prompts, trigger_context
from hankwatch.sentinels.queue import Trigger
from hankwatch.sentinels.strategies import Batch, make_strategy
from hankwatch.stream.bus import ListenerFailure
from hankwatch.stream.stream import EventStream


@dataclass(frozen=True, slots=True)
class Fire:
    """One trigger that would have been carried out."""

    number: int
    """1-based."""
    batch: Batch
    scope: CodonScope
    """The codon that ran when it fired."""

    def as_json(self, strategy: str) -> dict[str, Any]:
        """Its line of ``try --json``."""
        return {
            "trigger": self.number,
            "strategy": strategy,
            "cause": str(self.batch.cause),
            "at": format_stamp(self.batch.at_ms),
            "eventCount": len(self.batch.events),
            "eventIds": [event.id for event in self.batch.events],
            "omitted": 0,
        }


@dataclass(slots=True)
class Attempt:
    """The fires of one sentinel on one recording; the queue cannot overflow, since no call takes time."""

    config: SentinelConfig
    on_fire: Callable[[Fire], None]
    """Called in order, as each fires."""
    events: int = 0
    """Events that triggers can see."""
    matched: int = 0
    """How often the trigger matched."""
    triggers: int = 0
    given_up: str | None = None
    """Why matching was given up (patterns that take too long), or None."""
    _timer: Timer | None = None
    _scope: CodonScope = field(default_factory=lambda: CodonScope("", "", "", None, ""))
    _failure: Exception | None = None
    _last_ms: int = 0

    def run(self, source: Source, *, drain: bool = True) -> None:
        """Play ``source`` through the sentinel's trigger and strategy; buffers left are flushed unless told not to.

        A failure of ``on_fire`` comes out at the end.
        """
        time = StreamTime()
        stream = EventStream(
            None,
            time=time,
            timers=Timers(),
            redactor=Redactor(enabled=False),
            ids=IdSource(0),
            on_failure=_no_journal,
            on_listener_failure=self._failed,
        )
        index: TriggerIndex[str] = TriggerIndex(lambda _, reason: setattr(self, "given_up", reason))
        index.add(self.config.id, self.config.trigger)
        strategy = make_strategy(self.config.execution)

        def on_due(at_ms: int) -> None:
            self._timer = None
            due_ms = strategy.next_due_ms()
            if due_ms is not None and due_ms <= at_ms:
                self._fire(strategy.on_due(at_ms))
            arm()

        def arm() -> None:
            due_ms = strategy.next_due_ms()
            if due_ms is not None and (self._timer is None or self._timer.due_ms > due_ms):
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = stream.timers.at(due_ms, on_due)

        def on_event(event: Event) -> None:
            self._note(event)
            for match in index.route(event):
                self.matched += 1
                self._fire(strategy.on_match(match.events, event.at_ms))
            arm()

        stream.subscribe(on_event, name=self.config.id)
        source.play(stream, time)
        if drain:
            self._fire(strategy.drain(self._last_ms))
        if self._failure is not None:
            raise self._failure

    def _failed(self, failure: ListenerFailure) -> None:
        self._failure = self._failure or failure.error

    def summary(self, source: Source) -> dict[str, Any]:
        """The last line of ``try --json``."""
        return {
            "events": self.events,
            "matched": self.matched,
            "triggers": self.triggers,
            "droppedTriggers": 0,
            "droppedEvents": 0,
            "badLines": source.bad_lines,
            "estimatedCostUsd": None,
        }

    def _note(self, event: Event) -> None:
        if routing(event.type, event.data) is Routing.NEVER:
            return
        self.events += 1
        self._last_ms = event.at_ms
        if event.type == "codon.started":
            data = event.data
            self._scope = CodonScope(
                str(data.get("codonId", "")),
                str(data.get("baseCodonId") or data.get("codonId", "")),
                str(data.get("codonName", "")),
                data.get("codonDescription"),
                str(data.get("startTime", "")),
            )

    def _fire(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.triggers += 1
            self.on_fire(Fire(self.triggers, batch, self._scope))


async def render(fire: Fire, config: SentinelConfig, prompts: Prompts, sandbox: Sandbox) -> dict[str, str | None]:
    """The prompts of a fire, ``system`` (None without one) and ``user``.

    Raises:
        RenderFault: the template fails on these events.
    """
    trigger = Trigger(fire.number, fire.batch, 0)
    context = trigger_context(trigger, config.execution.strategy, fire.scope, config)
    messages = {message.role: message.content for message in await render_prompts(prompts, sandbox, context)}
    return {"system": messages.get("system"), "user": messages["user"]}


def _no_journal(error: InfrastructureError) -> None:
    raise error  # there is no journal here that could fail
