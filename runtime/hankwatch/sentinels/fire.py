"""One trigger carried out: announce, compose, ask, emit the output, write the entry, remember (spec sentinels 5-9)."""

from dataclasses import dataclass, field
from math import inf
from typing import Literal

from anyio.lowlevel import checkpoint_if_cancelled

from hankwatch.core.contain import contain
from hankwatch.core.errors import ModelCallFailed, RenderFault, SchemaFault, TemplateFault
from hankwatch.events.envelope import Event, EventData, format_stamp
from hankwatch.events.observers import (
    FatalErrorType,
    OutputTokens,
    SentinelErrorType,
    SentinelOutput,
    SentinelTriggered,
)
from hankwatch.events.run import Info
from hankwatch.llm.client import ModelClient, ModelReply, ModelRequest
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.answers import Answer, AnswerInvalid, answered
from hankwatch.sentinels.composer import Composed, Composer
from hankwatch.sentinels.history import Damage, Turn
from hankwatch.sentinels.loader import LoadedSentinel
from hankwatch.sentinels.queue import Trigger
from hankwatch.sentinels.reports import content_text
from hankwatch.stream.stream import EventStream

REPORT_CHANGED = "report-changed"
"""Code of the ``info`` that says someone else changed a report."""
HISTORY_DAMAGED = "history-damaged"
"""Code of the ``info`` that says a conversation's file was not as it was written."""
OWN_CODES = frozenset({REPORT_CHANGED, HISTORY_DAMAGED})
"""Such an ``info`` is about sentinels' own work, so it is never routed to them."""


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

    def end(self, cost_usd: float | None, *, complete: bool = True) -> None:
        """``cost_usd`` is a lower bound unless ``complete``; what cannot be a cost is not known."""
        if cost_usd is not None and 0 <= cost_usd < inf:
            self.unpriced_calls -= complete
            self.known_cost_usd += cost_usd


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trigger came to nothing."""

    error_type: SentinelErrorType
    message: str
    retriable: bool
    fatal: FatalErrorType | None = None

    @property
    def of_model(self) -> bool:
        """The model gave no answer, or none that can be used."""
        return self.error_type in {"llm-call-failed", "structured-output-invalid"}


@dataclass(slots=True)
class Fired:
    """How a trigger went; no failure means: its output was emitted."""

    failure: Failure | None = None
    unwritten: list[str] = field(default_factory=list)
    """Why the entry of the emitted output, or the turn of the conversation, is not in its file yet."""
    damaged: bool = False
    """The conversation's file had been changed by something else."""
    omitted: int = 0
    """Events that its prompt did not show whole."""


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
        self._composer = Composer(sentinel, sandbox)

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
            composed = await self._composer.compose(trigger)
            fired.omitted = composed.omitted
            step = "llm-call-failed"
            answer = await answered(self._ask, composed.request, self._sentinel.answers, self._sandbox)
            # A validation may have ended just when the sentinel was unloaded.
            await checkpoint_if_cancelled()
            self.answered = True
            for output in self._stream.emit(self._output(trigger, composed, answer)):
                self._write(triggered[0].data, output, fired)
                self._remember(composed.question, output, fired)
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

    async def _ask(self, request: ModelRequest) -> ModelReply:
        self.account.begin(format_stamp(self._stream.now_ms()))
        try:
            reply = await self._model.complete(request)
        except ModelCallFailed as failure:
            self.account.failed_calls += 1
            self.account.end(failure.cost_usd, complete=failure.cost_complete)
            raise
        # A client that swallowed its cancellation must not speak for a sentinel that has been unloaded.
        await checkpoint_if_cancelled()
        self.account.end(reply.cost_usd, complete=reply.cost_complete)
        if not reply.text.strip():
            self.account.failed_calls += 1
            raise ModelCallFailed(request.model, f"the reply is empty ({reply.finish_reason})", retriable=False)
        return reply

    def _output(self, trigger: Trigger, composed: Composed, answer: Answer) -> SentinelOutput:
        return SentinelOutput(
            **self._sentinel.identity,
            trigger_number=trigger.number,
            output_type="text" if self._sentinel.answers is None else "structured",
            content=answer.content,
            cost=answer.cost_usd,
            tokens=_tokens(answer),
            event_count=len(trigger.batch.events),
            cause=trigger.cause,
            truncated=True if answer.truncated else None,
            omitted=composed.omitted or None,
            call_id=answer.call_id,
        )

    def _write(self, triggered: EventData, output: Event, fired: Fired) -> None:
        report = self._sentinel.report
        with contain(lambda error: fired.unwritten.append(str(error))):
            if report.write(triggered, output):
                shown = report.log.path.shown
                message = f"{shown} was changed by something else; what is there is kept and entries go on behind it"
                self._stream.emit(Info(message=message, code=REPORT_CHANGED, details={"path": shown}))

    def _remember(self, question: str, output: Event, fired: Fired) -> None:
        if (conversation := self._sentinel.conversation) is None:
            return
        with contain(lambda error: fired.unwritten.append(f"the conversation's history: {error}")):
            # Both as they may be written: the answer as it was emitted, the question redacted like it.
            turn = Turn(self._stream.redact(question), content_text(output.data["content"]))
            damage = conversation.remember(turn)
            if damage is not None:
                fired.damaged = True
                self._stream.emit(damage_info(damage))


def damage_info(damage: Damage) -> Info:
    """How a damaged history is told."""
    details = {"path": damage.path, "sideFile": damage.side_file}
    return Info(message=damage.message, code=HISTORY_DAMAGED, details=details)


def _failure(error: Exception, step: SentinelErrorType) -> Failure:
    match error:
        case TemplateFault():
            return Failure("template-render-failed", str(error), retriable=False, fatal="template")
        case RenderFault():
            return Failure("template-render-failed", str(error), retriable=False)
        case ModelCallFailed():
            return Failure("llm-call-failed", str(error), retriable=error.retriable)
        case AnswerInvalid():
            return Failure("structured-output-invalid", str(error), retriable=True)
        case SchemaFault():  # it was sound when it was loaded: holding this answer to it takes too long
            return Failure("structured-output-invalid", str(error), retriable=True)
        case _:
            return Failure(step, f"{type(error).__name__}: {error}", retriable=False)


def _tokens(answer: Answer) -> OutputTokens | None:
    if answer.input_tokens is None or answer.output_tokens is None:
        return None
    return OutputTokens(input=answer.input_tokens, output=answer.output_tokens)
