"""One trigger carried out: announce, render, ask the model, emit the output, write the entry (spec sentinels 5-9)."""

from dataclasses import dataclass
from typing import Literal

from anyio.lowlevel import checkpoint_if_cancelled

from hankwatch.core.contain import contain
from hankwatch.core.errors import ModelCallFailed, RenderFault, TemplateFault
from hankwatch.events.envelope import Event, EventData, format_stamp
from hankwatch.events.observers import (
    FatalErrorType,
    OutputTokens,
    SentinelErrorType,
    SentinelOutput,
    SentinelTriggered,
)
from hankwatch.events.run import Info
from hankwatch.llm.client import Message, ModelClient, ModelReply, ModelRequest
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.loader import LoadedSentinel
from hankwatch.sentinels.prompts import render_prompts, trigger_context
from hankwatch.sentinels.queue import Trigger
from hankwatch.stream.stream import EventStream

REPORT_CHANGED = "report-changed"
"""Code of the ``info`` that says someone else changed a report. Sentinels' own work, so never routed to them."""


@dataclass(slots=True)
class Account:
    """What one sentinel's model calls came to."""

    calls: int = 0
    """Begun, failed and cancelled ones included."""
    failed_calls: int = 0
    known_cost_usd: float = 0.0
    unpriced_calls: int = 0
    """Calls whose cost is not known: no price, still running, or cancelled on the wire."""
    last_call_at: str | None = None

    @property
    def cost_usd(self) -> float | None:
        """The known cost; None when no call's cost is known. A lower bound while ``unpriced_calls`` is not 0."""
        return None if self.unpriced_calls and not self.known_cost_usd else self.known_cost_usd

    def begin(self, at: str) -> None:
        self.calls += 1
        self.unpriced_calls += 1
        self.last_call_at = at

    def end(self, cost_usd: float | None) -> None:
        if cost_usd is not None:
            self.unpriced_calls -= 1
            self.known_cost_usd += cost_usd


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trigger came to nothing."""

    error_type: SentinelErrorType
    message: str
    retriable: bool
    fatal: FatalErrorType | None = None


@dataclass(slots=True)
class Fired:
    """How a trigger went; neither set means: output emitted and written."""

    failure: Failure | None = None
    unwritten: str | None = None
    """Why the entry of the emitted output is not in its file yet."""


class Firing:
    """Carries out one sentinel's triggers, one at a time. Only infrastructure failures and cancellation get out."""

    def __init__(self, sentinel: LoadedSentinel, *, stream: EventStream, model: ModelClient, sandbox: Sandbox) -> None:
        self.account = Account()
        self.answered = False
        """The running trigger has its reply; what follows happens in one step and is not to be cancelled."""
        self._sentinel = sentinel
        self._stream = stream
        self._model = model
        self._sandbox = sandbox

    async def fire(self, trigger: Trigger, queue_size: int) -> Fired:
        """Carry the trigger out; ``queue_size`` triggers wait behind it."""
        fired = Fired()
        step: Literal["template-render-failed", "llm-call-failed"] = "template-render-failed"

        def failed(error: Exception) -> None:
            fired.failure = _failure(error, step)

        self.answered = False
        triggered = self._announce(trigger, queue_size)
        if not triggered:
            return fired  # the stream is closed: the run is over
        with contain(failed):
            strategy = self._sentinel.config.execution.strategy
            it = trigger_context(trigger, strategy, self._sentinel.scope, self._sentinel.config)
            messages = await render_prompts(self._sentinel.prompts, self._sandbox, it)
            step = "llm-call-failed"
            reply = await self._ask(trigger, messages, it["events"])
            self.answered = True
            for output in self._stream.emit(self._output(trigger, reply)):
                self._write(triggered[0].data, output, fired)
        return fired

    def _announce(self, trigger: Trigger, queue_size: int) -> tuple[Event, ...]:
        config, batch = self._sentinel.config, trigger.batch
        return self._stream.emit(
            SentinelTriggered(
                **self._sentinel.identity,
                trigger_number=trigger.number,
                strategy=config.execution.strategy,
                event_count=len(batch.events),
                queue_size=queue_size,
                cause=trigger.cause,
                event_ids=trigger.event_ids,
                at=format_stamp(batch.at_ms),
            )
        )

    async def _ask(self, trigger: Trigger, messages: tuple[Message, ...], events: list[EventData]) -> ModelReply:
        config, params = self._sentinel.config, self._sentinel.config.llm_params
        request = ModelRequest(
            model=config.model,
            messages=messages,
            temperature=params.temperature,
            max_output_tokens=params.max_output_tokens,
            max_retries=params.max_retries,
            timeout_s=params.timeout_seconds,
            events=tuple(events),
            labels={
                "sentinelId": config.id,
                "codonId": self._sentinel.scope.codon_id,
                "triggerNumber": trigger.number,
            },
        )
        self.account.begin(format_stamp(self._stream.now_ms()))
        try:
            reply = await self._model.complete(request)
        except ModelCallFailed as failure:
            self.account.failed_calls += 1
            self.account.end(failure.cost_usd)
            raise
        # A client that swallowed its cancellation must not speak for a sentinel that has been unloaded.
        await checkpoint_if_cancelled()
        self.account.end(reply.cost_usd)
        if not reply.text.strip():
            self.account.failed_calls += 1
            raise ModelCallFailed(config.model, f"the reply is empty ({reply.finish_reason})", retriable=False)
        return reply

    def _output(self, trigger: Trigger, reply: ModelReply) -> SentinelOutput:
        return SentinelOutput(
            **self._sentinel.identity,
            trigger_number=trigger.number,
            output_type="text",
            content=reply.text,
            cost=reply.cost_usd,
            tokens=OutputTokens(input=reply.input_tokens, output=reply.output_tokens),
            event_count=len(trigger.batch.events),
            cause=trigger.cause,
            truncated=True if reply.truncated else None,
            call_id=reply.call_id,
        )

    def _write(self, triggered: EventData, output: Event, fired: Fired) -> None:
        report = self._sentinel.report

        def unwritten(error: Exception) -> None:
            fired.unwritten = str(error)

        with contain(unwritten):
            if report.write(triggered, output):
                shown = report.log.path.shown
                message = f"{shown} was changed by something else; what is there is kept and entries go on behind it"
                self._stream.emit(Info(message=message, code=REPORT_CHANGED, details={"path": shown}))


def _failure(error: Exception, step: SentinelErrorType) -> Failure:
    match error:
        case TemplateFault():
            return Failure("template-render-failed", str(error), retriable=False, fatal="template")
        case RenderFault():
            return Failure("template-render-failed", str(error), retriable=False)
        case ModelCallFailed():
            return Failure("llm-call-failed", str(error), retriable=error.retriable)
        case _:
            return Failure(step, f"{type(error).__name__}: {error}", retriable=False)
