"""The call log: one JSON line for each model call, with what was asked and what came back.

A line of ``.hankweave/sentinels/calls.jsonl`` (design "How it runs" 11)::

    {"callId", "digest", "model", …labels…,
     "request": {"messages", "temperature", "maxOutputTokens", "jsonSchema"?},
     "reply": {"text", "finishReason"} | "error": {"reason", "retriable", "status"},
     "tokens": {"input", "output"} | null, "costUsd", "startedAt", "durationMs"}

Labels are the request's own (``sentinelId``, ``codonId``, ``triggerNumber``). ``costUsd`` is null when
the price is unknown. ``digest`` names the request (``digest_of``), so that a recorded call can be found
by what was asked.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_json
from hankwatch.events.envelope import format_stamp
from hankwatch.llm.client import ModelReply, ModelRequest


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
    _started_s: float = 0.0

    def start(self, clock: Clock) -> None:
        """Its time counts from now; the last start stands."""
        self.started_ms = int(clock.now().timestamp() * 1000)
        self._started_s = clock.monotonic()

    def end(self, clock: Clock) -> None:
        """Its time ends now."""
        self.duration_ms = round((clock.monotonic() - self._started_s) * 1000)

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
            "startedAt": format_stamp(self.started_ms),
            "durationMs": self.duration_ms,
        }


class CallLog:
    """Appends calls to a file; never fails the call it records.

    Each line is one write, made when the call has ended, so a line is there whole or not at all; what a
    crash tore off is closed by a newline before the next line. Used on the loop's thread.
    """

    def __init__(self, path: Path, *, redactor: Redactor, on_failure: Callable[[OSError], None]) -> None:
        self._path = path
        self._redactor = redactor
        self._on_failure = on_failure

    def write(self, call: Call) -> None:
        """Append the line of ``call``; a failure goes to ``on_failure`` and nowhere else."""
        line, _ = clean_json(self._redactor.data(call.line()))
        try:
            self._append(orjson.dumps(line) + b"\n")
        except OSError as error:
            self._on_failure(error)

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # The folder lies within the agent's reach: no link is followed and nothing that blocks is opened.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.open(self._path, flags, 0o644)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(f"{self._path} is not a regular file")
            torn = status.st_size > 0 and os.pread(file, 1, status.st_size - 1) != b"\n"
            line = b"\n" + line if torn else line
            written = os.write(file, line)
            if written < len(line):
                os.ftruncate(file, status.st_size)
                raise OSError(f"{self._path} took {written} of {len(line)} bytes")
        finally:
            os.close(file)


def redacted(request: ModelRequest, redactor: Redactor) -> ModelRequest:
    """The request without secrets, as it is sent, logged and digested."""
    return replace(
        request,
        messages=tuple(replace(message, content=redactor.text(message.content)) for message in request.messages),
        json_schema=None if request.json_schema is None else redactor.data(dict(request.json_schema)),
    )


def digest_of(request: ModelRequest) -> str:
    """SHA-256 (hex) of everything in a redacted request that decides the reply of a real provider.

    Limits, retries and labels do not, so they are not in it; neither are the events, which only the
    builtin models read, and those need no recording.
    """
    document, _ = clean_json(_request_json(request))
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _request_json(request: ModelRequest) -> dict[str, Any]:
    schema = {} if request.json_schema is None else {"jsonSchema": dict(request.json_schema)}
    return {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "temperature": float(request.temperature),
        "maxOutputTokens": request.max_output_tokens,
        **schema,
    }


def _outcome_json(outcome: ModelReply | ModelCallFailed | None) -> dict[str, Any]:
    match outcome:
        case ModelReply():
            return {
                "reply": {"text": outcome.text, "finishReason": outcome.finish_reason},
                "tokens": {"input": outcome.input_tokens, "output": outcome.output_tokens},
                "costUsd": outcome.cost_usd,
            }
        case ModelCallFailed():
            error = {"reason": outcome.reason, "retriable": outcome.retriable, "status": outcome.status}
            return {"error": error, "tokens": None, "costUsd": outcome.cost_usd}
        case None:
            error = {"reason": "cancelled before it ended", "retriable": True, "status": None}
            return {"error": error, "tokens": None, "costUsd": None}
