"""One running sentinel: from its load to its unload (spec sentinels 4, 5, 8)."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.limits import within
from hankwatch.events.envelope import Event, format_stamp
from hankwatch.events.observers import (
    FatalErrorType,
    ReportPlan,
    ReportToWebsocket,
    SentinelError,
    SentinelErrorType,
    SentinelLoaded,
    SentinelUnloaded,
    UnloadReason,
)
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger
from hankwatch.sentinels.fire import Failure, Fired, Firing, damage_info
from hankwatch.sentinels.gather import Gatherer
from hankwatch.sentinels.loader import LoadedSentinel
from hankwatch.sentinels.queue import Trigger, TriggerQueue
from hankwatch.sentinels.strategies import Batch
from hankwatch.stream.stream import EventStream

_LOG = logging.getLogger(__name__)

Lifecycle = Literal["loaded", "active", "completing", "unloaded"]
"""What a sentinel does, as people are told: it has matched nothing yet; it observes and works; it finishes what was
matched while its codon ends; it is gone. A codon that is tried again makes a completing one active again."""


@dataclass(frozen=True, slots=True)
class SentinelSummary:
    """One line of a run's summary."""

    sentinel_id: str
    codon_id: str
    fired: int
    """Triggers carried out, failed ones included."""
    failed: int
    calls: int
    cost_usd: float | None
    """Known cost; None when no call's cost is known."""
    unpriced_calls: int
    """Calls whose cost is not known; when not 0, ``cost_usd`` is a lower bound."""
    dropped_triggers: int
    dropped_events: int
    abandoned_triggers: int
    omitted_events: int
    """Events that its prompts did not show whole, for want of room in the model's context window."""
    lifecycle: Lifecycle
    report: str
    """Relative to the execution directory."""
    unload_reason: UnloadReason | None
    """None while it is loaded."""


@dataclass(slots=True)
class _InFlight:
    trigger: Trigger
    scope: anyio.CancelScope


class Sentinel:
    """Takes matches, makes triggers of them, carries these out one after the other, until it is unloaded.

    Everything but ``drain`` and ``carry_out_again`` is synchronous and runs on the loop's thread. Nothing here raises, whatever a
    model, a template, a disk or a strategy does; only an infrastructure failure passes.
    """

    def __init__(
        self,
        loaded: LoadedSentinel,
        firing: Firing,
        *,
        stream: EventStream,
        clock: Clock,
        spawn: Callable[[Callable[[], Awaitable[None]]], None],
        last_event_ms: Callable[[], int],
        on_unloaded: Callable[["Sentinel"], None],
    ) -> None:
        self.id = loaded.config.id
        self.unload_reason: UnloadReason | None = None
        self._loaded = loaded
        self._firing = firing
        self._stream = stream
        self._clock = clock
        self._spawn = spawn
        self._last_event_ms = last_event_ms
        self._on_unloaded = on_unloaded
        self._gatherer = Gatherer(loaded.config.execution, stream.timers, on_due=self._enqueue, on_failure=self._break)
        self._queue = TriggerQueue()
        self._in_flight: _InFlight | None = None
        self._working = False
        self._rested = anyio.Event()
        self._fired = 0
        self._failed = 0
        self._failures_in_a_row = 0
        self._abandoned = 0
        self._omitted = 0
        self._observes: Literal["loaded", "active", "completing"] = "loaded"
        self._draining = False
        self._drain_spent_s = 0.0
        self._loaded_at = ""
        self._unloaded_at: str | None = None

    @property
    def loaded(self) -> bool:
        """Whether it still takes matches."""
        return self.unload_reason is None

    @property
    def watches(self) -> bool:
        """Whether events are put to its trigger; not when it only carries out failed triggers again."""
        return self._loaded.source.source != "retry"

    @property
    def lifecycle(self) -> Lifecycle:
        """What it does at the moment."""
        return self._observes if self.loaded else "unloaded"

    @property
    def firing(self) -> Firing:
        """What carries its triggers out; knows their cost."""
        return self._firing

    @property
    def trigger(self) -> EventTrigger | SequenceTrigger:
        """What the trigger index is given."""
        return self._loaded.config.trigger

    def announce(self) -> None:
        """Emit ``sentinel.loaded``."""
        config, source = self._loaded.config, self._loaded.source
        codons = source.settings.report_to_websocket
        shown = {**config.report_to_websocket.model_dump(), **(codons.model_dump(exclude_unset=True) if codons else {})}
        self._loaded_at = format_stamp(self._stream.now_ms())
        events = self._stream.emit(
            SentinelLoaded(
                **self._loaded.identity,
                model=config.model,
                trigger_type=config.trigger.type,
                execution_strategy=config.execution.strategy,
                conversational=config.conversational is not None,
                source=source.source,
                source_path=source.source_path,
                report_to_websocket=ReportToWebsocket(**shown),
                report=self.report_plan,
            )
        )
        for event in events:
            self._loaded.report.loaded(event)
        conversation = self._loaded.conversation
        if conversation is not None and conversation.damage is not None:
            self._stream.emit(damage_info(conversation.damage))

    def on_match(self, events: tuple[Event, ...], at_ms: int) -> None:
        """Take one match of its trigger; returns at once."""
        if not self.loaded:
            return
        if not self._draining:
            self._observes = "active"
        with contain(self._break):
            self._log_dropped(self._queue.hold(events))
            self._enqueue(self._gatherer.on_match(events, at_ms))

    def give_up(self, reason: str) -> None:
        """The trigger index no longer asks it, because matching it costs too much or fails."""
        _LOG.warning("sentinel %s: %s", self.id, reason)
        self.unload("fatal-error", "resource")

    async def drain(self, budget_s: float, *, fresh_budget: bool) -> None:
        """Make triggers of what the strategy holds and wait until all are carried out.

        What is left when the budget is spent, over all drains since the last fresh one, is cancelled and named
        by one ``sentinel.error`` ``abandoned``.
        """
        spent_s = 0.0 if fresh_budget else self._drain_spent_s
        started = self._clock.monotonic()
        self._observes, self._draining = "completing", True
        try:
            await within(self._clock, max(0.0, budget_s - spent_s), self._finish)
        except TimeoutError:
            self._abandon("drain", "the time for finishing at the codon's end is spent")
        finally:
            self._draining = False
            self._drain_spent_s = spent_s + self._clock.monotonic() - started

    async def carry_out_again(self, batches: Iterable[Batch]) -> list[Failure | None]:
        """Carry out batches of an earlier load, one after the other; see ``Attached.carry_out``."""
        outcomes: list[Failure | None] = []
        self._observes = "active"
        for batch in batches:
            if not self.loaded:
                break
            self._queue.hold(batch.events)
            self._hold_back([batch])
            trigger = self._queue.take()
            assert trigger is not None
            if (fired := await self._carry_out(trigger)) is not None:
                outcomes.append(fired.failure)
        return outcomes

    def unload(self, reason: UnloadReason, error_type: FatalErrorType | None = None) -> None:
        """Stop at once: name what was not carried out, complete the report, emit ``sentinel.unloaded`` last."""
        if not self.loaded:
            return
        self.unload_reason = reason
        self._gatherer.stop()
        self._on_unloaded(self)
        with contain(self._log_failure):
            self._hold_back(self._gatherer.drain(self._last_event_ms()))
        self._report_overflow()
        self._abandon("unload", "the sentinel was unloaded first")
        with contain(lambda error: self._emit_error("file-write-failed", str(error), retriable=True)):
            self._loaded.report.catch_up()
        self._unloaded_at = format_stamp(self._stream.now_ms())
        statistics, account = self._queue.statistics, self._firing.account
        self._stream.emit(
            SentinelUnloaded(
                **self._loaded.identity,
                reason=reason,
                error_type=error_type,
                final_cost=account.cost_usd,
                llm_call_count=account.calls,
                dropped_triggers=statistics.dropped_triggers,
                dropped_events=statistics.dropped_events,
            )
        )

    def summary(self) -> SentinelSummary:
        """Its line of the summary, at any time."""
        statistics, account = self._queue.statistics, self._firing.account
        return SentinelSummary(
            sentinel_id=self.id,
            codon_id=self._loaded.scope.codon_id,
            fired=self._fired,
            failed=self._failed,
            calls=account.calls,
            cost_usd=account.cost_usd,
            unpriced_calls=account.unpriced_calls,
            dropped_triggers=statistics.dropped_triggers,
            dropped_events=statistics.dropped_events,
            abandoned_triggers=self._abandoned,
            omitted_events=self._omitted,
            lifecycle=self.lifecycle,
            report=self._loaded.report.log.path.shown,
            unload_reason=self.unload_reason,
        )

    @property
    def report_plan(self) -> ReportPlan:
        """The files it writes."""
        return self._loaded.report.plan()

    def state(self) -> dict[str, Any]:
        """Its ``SentinelState`` for codon records (reference 3.6)."""
        account = self._firing.account
        state = {
            "id": self.id,
            "model": self._loaded.config.model,
            "loadedAt": self._loaded_at,
            "unloadedAt": self._unloaded_at,
            "llmCallCount": account.calls,
            "failedLLMCalls": account.failed_calls,
            "lastLlmCallAt": account.last_call_at,
            "totalTriggers": self._queue.numbered,
            "totalCost": account.cost_usd,
            "status": "active" if self.loaded else "unloaded",
            "lifecycle": self.lifecycle,
            "unloadReason": self.unload_reason,
        }
        return {key: value for key, value in state.items() if value is not None or key == "totalCost"}

    def _enqueue(self, batches: Iterable[Batch]) -> None:
        self._hold_back(batches)
        if len(self._queue) and not self._working:
            self._working = True
            self._rested = anyio.Event()
            self._spawn(self._work)

    def _hold_back(self, batches: Iterable[Batch]) -> None:
        """Queue batches without starting to carry them out."""
        for batch in batches:
            self._log_dropped(self._queue.put(batch))

    async def _work(self) -> None:
        try:
            with contain(self._break):
                while (trigger := self._queue.take()) is not None:
                    await self._carry_out(trigger)
                    if not len(self._queue):
                        self._report_overflow()
        finally:
            self._working = False
            self._rested.set()

    async def _carry_out(self, trigger: Trigger) -> Fired | None:
        with anyio.CancelScope() as scope:
            self._in_flight = _InFlight(trigger, scope)
            fired = await self._firing.fire(trigger, len(self._queue))
        if scope.cancel_called:
            return None  # abandoned: that has been reported, and after an unload nothing may be said
        self._in_flight = None
        self._fired += 1
        self._omitted += fired.omitted
        if self.loaded:
            self._count(trigger, fired)
        return fired

    def _count(self, trigger: Trigger, fired: Fired) -> None:
        about: dict[str, Any] = {"trigger_number": trigger.number, "event_ids": trigger.event_ids}
        for reason in fired.unwritten:
            self._emit_error("file-write-failed", reason, retriable=True, **about)
        config, failure = self._loaded.config, fired.failure
        if failure is None:
            self._failures_in_a_row = 0
            if fired.damaged and not config.tolerates_damage:
                self.unload("fatal-error", "corruption")
            return
        self._failed += 1
        self._failures_in_a_row += self._counts(failure)
        self._emit_error(failure.error_type, failure.message, retriable=failure.retriable, **about)
        if failure.fatal is not None and config.error_handling.unload_on_fatal_error:
            self.unload("fatal-error", failure.fatal)
        elif self._failures_in_a_row >= config.error_handling.max_consecutive_failures:
            self.unload("consecutive-failures")

    def _counts(self, failure: Failure) -> bool:
        """Whether a failure counts toward unloading: not the model's, in a conversation that goes on despite them."""
        conversational = self._loaded.config.conversational
        return not (conversational and conversational.continue_on_error and failure.of_model)

    async def _finish(self) -> None:
        while self.loaded:
            with contain(self._break):
                self._enqueue(self._gatherer.drain(self._last_event_ms()))
            if not self._working:
                return
            await self._rested.wait()

    def _abandon(self, reason: Literal["drain", "unload"], why: str) -> None:
        left = self._queue.clear()
        if self._in_flight is not None and not self._firing.answered:
            left.insert(0, self._in_flight.trigger)
            self._in_flight.scope.cancel()
            self._in_flight = None
        if not left:
            return
        self._abandoned += len(left)
        self._emit_error(
            "abandoned",
            f"{len(left)} trigger(s) not carried out: {why}",
            retriable=True,
            reason=reason,
            count=len(left),
            trigger_numbers=[trigger.number for trigger in left],
            event_ids=[event_id for trigger in left for event_id in trigger.event_ids],
            event_counts=[len(trigger.batch.events) for trigger in left],
        )

    def _report_overflow(self) -> None:
        if (dropped := self._queue.end_episode()) is None:
            return
        self._emit_error(
            "queue-overflow",
            f"{dropped.triggers} trigger(s) with {dropped.events} event(s) dropped: the queue was full",
            retriable=False,
            count=dropped.triggers,
            trigger_numbers=dropped.trigger_numbers,
        )

    def _emit_error(self, error_type: SentinelErrorType, message: str, *, retriable: bool, **details: Any) -> None:
        self._stream.emit(
            SentinelError(
                **self._loaded.identity,
                error_type=error_type,
                message=message,
                retriable=retriable,
                consecutive_failure_count=self._failures_in_a_row,
                **details,
            )
        )

    def _break(self, error: Exception) -> None:
        """Something of its own failed where nothing should: it can no longer be trusted to count right."""
        self._log_failure(error)
        self.unload("fatal-error", "corruption")

    def _log_failure(self, error: Exception) -> None:
        _LOG.error("sentinel %s failed", self.id, exc_info=error)

    def _log_dropped(self, dropped: list[Trigger]) -> None:
        for trigger in dropped:
            events = len(trigger.batch.events)
            _LOG.info("sentinel %s: queue full, dropped trigger %d (%d events)", self.id, trigger.number, events)
