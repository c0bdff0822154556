"""Reading a call log: each line as the call it records."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.files import reading
from hankwatch.events.stamps import parse_stamp
from hankwatch.llm.client import Message, ModelReply, ModelRequest, Role


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a log."""

    id: str
    request: ModelRequest
    """Redacted, with its labels; without limits and events, which a log does not hold."""
    outcome: ModelReply | ModelCallFailed
    started_ms: int | None
    """Epoch milliseconds; None when the log does not say."""
    duration_ms: int | None
    """None when the log does not say."""


@dataclass(slots=True)
class RecordedCalls:
    """The calls of a log file, read once in its order; damaged lines are skipped and counted."""

    path: Path
    bad_lines: int = 0
    """Lines that are not calls, of those read so far."""

    def __iter__(self) -> Iterator[RecordedCall]:
        """Every call.

        Raises:
            OSError: The file cannot be read.
        """
        with reading(self.path) as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    yield _Line.model_validate_json(line.removeprefix(b"\xef\xbb\xbf")).call()
                except ValidationError:
                    self.bad_lines += 1


class _Part(BaseModel):
    """Lenient about further keys: a later version may write some."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, strict=True)


class _Message(_Part):
    role: Role
    content: str


class _Request(_Part):
    messages: tuple[_Message, ...]
    temperature: float
    max_output_tokens: int
    json_schema: dict[str, Any] | None = None
    schema_name: str | None = None
    schema_description: str | None = None


class _Reply(_Part):
    text: str
    finish_reason: str


class _Error(_Part):
    reason: str
    retriable: bool
    status: int | None = None


class _Tokens(_Part):
    input: int
    output: int


class _Line(_Part):
    """One line (``call``); what is not named here is a label."""

    model_config = ConfigDict(extra="allow")

    call_id: str
    model: str
    request: _Request
    reply: _Reply | None = None
    error: _Error | None = None
    tokens: _Tokens | None = None
    cost_usd: float | None = None
    cost_complete: bool = True
    attempts: tuple[Any, ...] = ()
    digest: str | None = None
    started_at: str | None = None
    duration_ms: int | None = None

    @model_validator(mode="after")
    def _ended_in_one_way(self) -> Self:
        if (self.reply is None) == (self.error is None):
            raise ValueError("either a reply or an error")
        return self

    def call(self) -> RecordedCall:
        asked = self.request
        labels = {key: value for key, value in (self.model_extra or {}).items() if isinstance(value, str | int)}
        request = ModelRequest(
            self.model,
            tuple(Message(message.role, message.content) for message in asked.messages),
            temperature=asked.temperature,
            max_output_tokens=asked.max_output_tokens,
            json_schema=asked.json_schema,
            schema_name=asked.schema_name,
            schema_description=asked.schema_description,
            labels=labels,
        )
        return RecordedCall(self.call_id, request, self._outcome(), parse_stamp(self.started_at), self.duration_ms)

    def _outcome(self) -> ModelReply | ModelCallFailed:
        attempts = max(1, len(self.attempts))
        if self.reply is not None:
            return ModelReply(
                self.reply.text,
                self.tokens.input if self.tokens else None,
                self.tokens.output if self.tokens else None,
                self.cost_usd,
                self.reply.finish_reason,
                call_id=self.call_id,
                attempts=attempts,
                cost_complete=self.cost_complete,
            )
        assert self.error is not None
        return ModelCallFailed(
            self.model,
            self.error.reason,
            retriable=self.error.retriable,
            status=self.error.status,
            cost_usd=self.cost_usd,
            cost_complete=self.cost_complete,
            attempts=attempts,
        )
