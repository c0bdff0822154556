"""Doubles for tests of code that uses hankwatch; the project's own tests use them too.

::

    async def test_the_narrator_reports_an_error() -> None:
        model = ScriptedModel(["it failed once", failure("overloaded"), hang()])
        stream = open_test_stream()
        stream.emit_recorded(make_event("tool.result", 1_000, toolName="Bash", isError=True))
        stream.advance(5_000)
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio

from hankwatch.core.clock import Clock, StreamTime, SystemClock, Timers, VirtualClock
from hankwatch.core.errors import InfrastructureError, ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import parse_stamp
from hankwatch.events.envelope import Event, IdSource, format_stamp
from hankwatch.llm.builtin import estimate_tokens
from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.stream.bus import ListenerFailure
from hankwatch.stream.journal import Journal
from hankwatch.stream.stream import EventStream

__all__ = [
    "After",
    "Answer",
    "Hang",
    "ScriptedModel",
    "VirtualClock",
    "VirtualStream",
    "after",
    "failure",
    "hang",
    "make_event",
    "open_test_stream",
    "recorded_agent",
]

EPOCH_MS: Final = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""Where virtual stream time starts, as in a replay of events without stamps."""
_IDS: Final = IdSource(seed=0)


@dataclass(frozen=True, slots=True)
class Hang:
    """The call never ends by itself."""


@dataclass(frozen=True, slots=True)
class After:
    """The answer comes ``delay_s`` after the call, on the model's clock."""

    delay_s: float
    answer: "Answer"


Answer = str | ModelReply | ModelCallFailed | After | Hang
"""What a scripted call does: reply with a text, reply exactly so, fail, or take its time about it."""


def hang() -> Hang:
    """An answer that never comes; only cancellation ends the call."""
    return Hang()


def after(delay_s: float, answer: Answer) -> After:
    """``answer``, ``delay_s`` seconds after the call."""
    return After(delay_s, answer)


def failure(
    reason: str, *, retriable: bool = False, status: int | None = None, retry_after_s: float | None = None
) -> ModelCallFailed:
    """An answer that fails the call; with ``retry_after_s`` the provider asks to be left alone for so long."""
    return ModelCallFailed("scripted", reason, retriable=retriable, status=status, retry_after_s=retry_after_s)


class ScriptedModel:
    """A ``ModelClient`` that does what a test says and remembers what it was asked.

    Args:
        answers: One answer for every call; or a sequence, an answer for each call in turn, after which
            calls fail; or a mapping from the ``sentinelId`` label or the model id to its answer; or a
            function of the request.
        clock: What ``after`` counts on.
        cost_usd: The cost of a text answer; None for an unknown price.
        unavailable: Model ids that ``check`` refuses; every other id is known.
        context_tokens: What ``check`` says a request may hold; None for unknown.
        supports_schema: Whether ``check`` says that the provider holds replies to a JSON Schema.
    """

    def __init__(
        self,
        answers: Answer | Iterable[Answer] | Mapping[str, Answer] | Callable[[ModelRequest], Answer] = "ok",
        *,
        clock: Clock | None = None,
        cost_usd: float | None = 0.001,
        unavailable: Collection[str] = (),
        context_tokens: int | None = None,
        supports_schema: bool = False,
    ) -> None:
        self.requests: list[ModelRequest] = []
        """Every request, in the order in which the calls began."""
        self._answer = _answering(answers)
        self._clock = clock or SystemClock()
        self._cost_usd = cost_usd
        self._unavailable = unavailable
        self._context_tokens = context_tokens
        self._supports_schema = supports_schema

    def check(self, model: str) -> ModelInfo | Unavailable:
        if model in self._unavailable:
            return Unavailable(model, "unknown-model", f"the script has no {model!r}", "use another id")
        return ModelInfo(
            model,
            provider="scripted",
            context_tokens=self._context_tokens,
            priced=self._cost_usd is not None,
            supports_schema=self._supports_schema,
        )

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if request.model in self._unavailable:
            raise ModelCallFailed(request.model, f"the script has no {request.model!r}", retriable=False)
        answer = self._answer(request)
        while isinstance(answer, After):
            await self._clock.sleep(answer.delay_s)
            answer = answer.answer
        match answer:
            case Hang():
                await anyio.sleep_forever()
                raise AssertionError("unreachable")
            case ModelCallFailed():
                raise answer
            case ModelReply():
                return answer
            case str():
                input_tokens = sum(estimate_tokens(message.content) for message in request.messages)
                return ModelReply(answer, input_tokens, estimate_tokens(answer), self._cost_usd)


class VirtualStream(EventStream):
    """An ``EventStream`` whose time moves only by ``advance`` and by recorded events."""

    def __init__(self, journal: Journal | None, *, start_ms: int = EPOCH_MS) -> None:
        self.events: list[Event] = []
        """Everything emitted, in journal order."""
        self.failures: list[InfrastructureError] = []
        """Why the stream closed by itself."""
        self.listener_failures: list[ListenerFailure] = []
        """What listeners and timers raised."""
        self._virtual = StreamTime(start_ms=start_ms)
        super().__init__(
            journal,
            time=self._virtual,
            timers=Timers(),
            redactor=Redactor(),
            ids=IdSource(seed=0),
            on_failure=self.failures.append,
            on_listener_failure=self.listener_failures.append,
        )
        self.subscribe(self.events.append, name="test record")

    def advance(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass; what is due on the way runs at its own instant."""
        until_ms = self.now_ms() + ms
        while (due_ms := self.timers.next_due_ms()) is not None and due_ms <= until_ms:
            self._virtual.advance_to(due_ms)
            self.emit()
        self._virtual.advance_to(until_ms)

    def of_type(self, *types: str) -> list[Event]:
        """The emitted events of these types, in order."""
        return [event for event in self.events if event.type in types]


def open_test_stream(path: Path | None = None, *, start_ms: int = EPOCH_MS) -> VirtualStream:
    """A stream in virtual time, journaled at ``path`` or nowhere; ``close`` it when it has a journal."""
    journal = Journal.open(path, sync_interval_s=None) if path is not None else None
    return VirtualStream(journal, start_ms=start_ms)


def make_event(type: str, at: int | str = EPOCH_MS, /, **data: Any) -> Event:  # noqa: A002 - the field's name
    """An event with the payload ``data`` (camelCase keys, not validated), stamped ``at``.

    Args:
        type: The event's type.
        at: Epoch milliseconds, or an ISO-8601 stamp that is kept as written.
        data: The payload.
    """
    if isinstance(at, str):
        at_ms = parse_stamp(at)
        if at_ms is None:
            raise ValueError(f"not a stamp: {at!r}")
        return Event(_IDS.next(at_ms), at, type, data, at_ms)
    return Event(_IDS.next(at), format_stamp(at), type, data, at)


def recorded_agent(path: Path | str) -> str:
    """What a codon's ``agent`` says to play the recorded stream at ``path``; a folder has one for each turn."""
    return f"recorded:{path}"


def _answering(
    answers: Answer | Iterable[Answer] | Mapping[str, Answer] | Callable[[ModelRequest], Answer],
) -> Callable[[ModelRequest], Answer]:
    if isinstance(answers, str | ModelReply | ModelCallFailed | After | Hang):
        return lambda _: answers
    if isinstance(answers, Mapping):
        return lambda request: _by_name(answers, request)
    if callable(answers):
        return answers
    script = iter(answers)
    return lambda _: next(script, failure("the script has no more answers"))


def _by_name(answers: Mapping[str, Answer], request: ModelRequest) -> Answer:
    by_model = answers.get(request.model, failure(f"the script names neither {request.labels} nor {request.model}"))
    return answers.get(str(request.labels.get("sentinelId")), by_model)
