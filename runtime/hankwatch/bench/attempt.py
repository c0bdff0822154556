"""``try``: what a sentinel would do on recorded events, in virtual time, without asking a model (spec cli)."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hankwatch.bench.sources import Source
from hankwatch.bench.stepping import Entered, Moment, steps, told_scope
from hankwatch.core.clock import StreamTime, Timers
from hankwatch.core.errors import InfrastructureError
from hankwatch.core.redaction import Redactor
from hankwatch.events.catalogue import routing
from hankwatch.events.envelope import Event, IdSource, Routing, format_stamp
from hankwatch.matching.near_misses import NearMisses
from hankwatch.matching.triggers import TriggerIndex
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.gather import Gatherer
from hankwatch.sentinels.prompts import CodonScope, Prompts, render_prompts, trigger_context
from hankwatch.sentinels.queue import Trigger
from hankwatch.sentinels.strategies import Batch
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
    events: int = 0
    """Events that triggers can see."""
    matched: int = 0
    """How often the trigger matched."""
    triggers: int = 0
    given_up: str | None = None
    """Why matching was given up (patterns that take too long), or None."""
    onlooker: Callable[[Event, int], None] | None = None
    """Told of each event that triggers can see, and how many matches it completed."""
    misses: NearMisses | None = None
    """Keeps why events did not match, if anybody wants to know."""
    _scope: CodonScope = field(default_factory=lambda: CodonScope("", "", "", None, ""))
    _one_scope: bool = True
    _index: TriggerIndex[str] | None = None
    _gatherer: Gatherer | None = None
    _failure: Exception | None = None
    _last_ms: int = 0
    _fired: deque[Fire] = field(default_factory=deque)

    def fires(self, source: Source, redactor: Redactor, *, drain: bool = True) -> Iterator[Fire]:
        """Play ``source`` through the sentinel's trigger and strategy: each fire in order, as it happens.

        Buffers left are flushed at the end unless told not to, or the recording is broken off before its end. Secrets
        are redacted as in a run.

        Raises:
            UsageError: the recording cannot be read to its end, or lacks the codon asked for.
        """
        time = StreamTime()
        stream = EventStream(
            None,
            time=time,
            timers=Timers(),
            redactor=redactor,
            ids=IdSource(0),
            on_failure=_no_journal,
            on_listener_failure=lambda failure: self._fail(failure.error),
        )
        stream.subscribe(self._on_event, name=self.config.id)
        self._one_scope = source.codon is None
        for step in steps(source, stream, time, one_scope=self._one_scope):
            match step:
                case Entered():
                    self._enter(step.scope, stream)
                case Moment.DRAIN | Moment.LEFT | Moment.BROKEN_OFF if drain and not source.broken_off:
                    self._drain(stream)
                case _:
                    pass
            yield from self._take()

    def summary(self, source: Source, estimated_cost_usd: float | None) -> dict[str, Any]:
        """The last line of ``try --json``; the cost is None when no price is known."""
        return {
            "events": self.events,
            "matched": self.matched,
            "triggers": self.triggers,
            "droppedTriggers": 0,
            "droppedEvents": 0,
            "badLines": source.bad_lines,
            "estimatedCostUsd": None if estimated_cost_usd is None else round(estimated_cost_usd, 6),
        }

    def _enter(self, scope: CodonScope, stream: EventStream) -> None:
        self._scope = scope
        if self._gatherer is not None:
            self._gatherer.stop()
        self._gatherer = Gatherer(self.config.execution, stream.timers, on_due=self._fire, on_failure=self._fail)
        self._index = TriggerIndex(lambda _, reason: setattr(self, "given_up", reason))
        self._index.add(self.config.id, self.config.trigger)
        if self.misses is not None:
            self.misses.start_afresh()

    def _drain(self, stream: EventStream) -> None:
        stream.emit()  # what is due fires as what it is
        if self._gatherer is not None:
            self._fire(self._gatherer.drain(self._last_ms))

    def _on_event(self, event: Event) -> None:
        if routing(event.type, event.data) is Routing.NEVER:
            return
        self._note(event)
        matches = [] if self._index is None else self._index.route(event)
        for match in matches:
            assert self._gatherer is not None
            self.matched += 1
            self._fire(self._gatherer.on_match(match.events, event.at_ms))
        if self.misses is not None and self._index is not None:
            self.misses.feed(event)
        if self.onlooker is not None:
            self.onlooker(event, len(matches))

    def _note(self, event: Event) -> None:
        self.events += 1
        self._last_ms = event.at_ms
        if self._one_scope and event.type == "codon.started":
            self._scope = told_scope(event.data)

    def _fire(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.triggers += 1
            self._fired.append(Fire(self.triggers, batch, self._scope))

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error

    def _take(self) -> Iterator[Fire]:
        if self._failure is not None:
            raise self._failure
        while self._fired:
            yield self._fired.popleft()


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
