"""A model call while it is made, and its line of the call log once it has ended.

A line of ``.hankweave/sentinels/calls.jsonl`` (design "How it runs" 11)::

    {"callId", "digest", "model", …labels…,
     "request": {"messages", "temperature", "maxOutputTokens", "jsonSchema"?, "schemaName"?, "schemaDescription"?},
     "reply": {"text", "finishReason"} | "error": {"reason", "retriable", "status"},
     "tokens": {"input", "output"} | null, "costUsd", "costComplete"?,
     "attempts"?: [{"startedAt", "durationMs", "outcome", "status"?, "retryAfterS"?}],
     "startedAt", "durationMs"}

Labels are the request's own (``sentinelId``, ``codonId``, ``triggerNumber``). ``costUsd`` is null when
nothing of it is known; with ``costComplete: false`` it is a lower bound. ``attempts`` are the requests made
for a call that went over the network; an ``outcome`` is ``reply`` or why there was none. ``digest`` names
the request (``digest_of``), so that a recorded call can be found by what was asked. The order of the keys
is fixed, so that two logs compare line by line.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_json
from hankwatch.events.envelope import format_stamp
from hankwatch.llm.client import ModelReply, ModelRequest

_CANCELLED: Final = "cancelled before it ended"


@dataclass(slots=True)
class Attempt:
    """One request on the wire, for a call."""

    started_ms: int
    """Epoch milliseconds."""
    duration_ms: int = 0
    outcome: ModelReply | ModelCallFailed | None = None
    """None for one that was cancelled."""

    @property
    def cost_usd(self) -> float | None:
        """None when unknown."""
        return self.outcome.cost_usd if self.outcome else None

    def line(self) -> dict[str, Any]:
        """The attempt as it stands in the line of its call."""
        line = {"startedAt": format_stamp(self.started_ms), "durationMs": self.duration_ms}
        match self.outcome:
            case ModelReply():
                return {**line, "outcome": "reply"}
            case ModelCallFailed() as failure:
                facts = {"status": failure.status, "retryAfterS": failure.retry_after_s}
                known = {key: value for key, value in facts.items() if value is not None}
                return {**line, "outcome": failure.reason, **known}
            case None:
                return {**line, "outcome": _CANCELLED}


@dataclass(slots=True)
class Call:
    """One model call while it is made, and its line once it has ended."""

    id: str
    request: ModelRequest
    """As sent: redacted."""
    started_ms: int = 0
    """Epoch milliseconds when its time began to count: with the slot, else when it was asked for."""
    duration_ms: int = 0
    outcome: ModelReply | ModelCallFailed | None = None
    """None for a call that was cancelled."""
    attempts: list[Attempt] = field(default_factory=list)
    """Empty for a call that needed no network."""
    started_s: float = 0.0
    """The same instant as ``started_ms`` on the monotonic clock."""

    def start(self, clock: Clock) -> None:
        """Its time counts from now; the last start stands."""
        self.started_ms = _now_ms(clock)
        self.started_s = clock.monotonic()

    @contextmanager
    def attempt(self, clock: Clock) -> Iterator[Attempt]:
        """A further attempt, which takes as long as the block; the block sets its outcome."""
        attempt = Attempt(_now_ms(clock))
        self.attempts.append(attempt)
        began_s = clock.monotonic()
        try:
            yield attempt
        finally:
            attempt.duration_ms = round((clock.monotonic() - began_s) * 1000)

    def end(self, clock: Clock) -> None:
        """Its time ends now."""
        self.duration_ms = round((clock.monotonic() - self.started_s) * 1000)

    def line(self) -> dict[str, Any]:
        """The call as one line of the log, not redacted."""
        request = _request_json(self.request)
        return {
            "callId": self.id,
            "digest": digest_of(self.request),
            "model": request.pop("model"),
            **self.request.labels,
            "request": request,
            **_outcome_json(self.outcome),
            **({"attempts": [attempt.line() for attempt in self.attempts]} if self.attempts else {}),
            "startedAt": format_stamp(self.started_ms),
            "durationMs": self.duration_ms,
        }


def redacted(request: ModelRequest, redactor: Redactor) -> ModelRequest:
    """The request without secrets, as it is sent, logged and digested."""
    return replace(
        request,
        messages=tuple(replace(message, content=redactor.text(message.content)) for message in request.messages),
        json_schema=None if request.json_schema is None else redactor.data(dict(request.json_schema)),
        schema_description=request.schema_description and redactor.text(request.schema_description),
    )


def digest_of(request: ModelRequest) -> str:
    """SHA-256 (hex) of everything in a redacted request that decides the reply of a real provider.

    Limits, retries and labels do not, so they are not in it; neither are the events, which only the
    builtin models read, and those need no recording.
    """
    document, _ = clean_json(_request_json(request))
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _request_json(request: ModelRequest) -> dict[str, Any]:
    structured = {
        "jsonSchema": None if request.json_schema is None else dict(request.json_schema),
        "schemaName": request.schema_name,
        "schemaDescription": request.schema_description,
    }
    return {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "temperature": float(request.temperature),
        "maxOutputTokens": request.max_output_tokens,
        **{key: value for key, value in structured.items() if value is not None},
    }


def _outcome_json(outcome: ModelReply | ModelCallFailed | None) -> dict[str, Any]:
    match outcome:
        case ModelReply():
            return {
                "reply": {"text": outcome.text, "finishReason": outcome.finish_reason},
                "tokens": None
                if outcome.input_tokens is None
                else {"input": outcome.input_tokens, "output": outcome.output_tokens},
                **_cost_json(outcome),
            }
        case ModelCallFailed():
            error = {"reason": outcome.reason, "retriable": outcome.retriable, "status": outcome.status}
            return {"error": error, "tokens": None, **_cost_json(outcome)}
        case None:
            error = {"reason": _CANCELLED, "retriable": True, "status": None}
            return {"error": error, "tokens": None, "costUsd": None}


def _cost_json(outcome: ModelReply | ModelCallFailed) -> dict[str, Any]:
    partial = {} if outcome.cost_complete else {"costComplete": False}
    return {"costUsd": outcome.cost_usd, **partial}


def _now_ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1000)
