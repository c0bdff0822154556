"""The model port: what sentinels ask of a model, whoever answers (spec sentinels 7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hankwatch.core.errors import ModelCallFailed

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything that decides a reply; its digest keys the call log."""

    model: str
    messages: tuple[Message, ...]
    temperature: float = 0.0
    """0-2."""
    max_output_tokens: int = 8_192
    """1-100,000."""
    max_retries: int = 2
    """0-5, transient failures only; not part of the digest."""
    timeout_s: float = 60.0
    """Per attempt; not part of the digest."""
    json_schema: Mapping[str, Any] | None = None
    """What the reply has to fit, for structured output.

    A model that ``enforces`` it is held to it by its provider; for any other, ``messages`` must ask for it.
    """
    schema_name: str | None = None
    """What the provider is told that the answer is called; without effect where it enforces no schema."""
    schema_description: str | None = None
    """What the provider is told that the answer is for; without effect where it enforces no schema."""
    events: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    """The trigger's events as plain data, for the builtin models; never sent to a provider."""
    labels: Mapping[str, str | int] = field(default_factory=dict, compare=False)
    """Who asks (``sentinelId``, ``codonId``, ``triggerNumber``); copied to the call log, not part of the digest."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A finished call."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    """Both None when the provider does not say, or says what cannot be (``usage``)."""
    cost_usd: float | None
    """Of all attempts; None when nothing of it is known, never 0 for unknown."""
    finish_reason: str = "stop"
    call_id: str | None = None
    """Id of its line in the call log, when one is written."""
    attempts: int = 1
    """Requests that were made for it, this reply's included."""
    cost_complete: bool = True
    """False: an earlier attempt may have cost something unknown, so ``cost_usd`` is a lower bound."""

    @property
    def truncated(self) -> bool:
        """The model stopped at its output limit."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model that can be called."""

    model: str
    provider: str
    """``builtin``, ``anthropic``, …; empty for an id without ``/``."""
    context_tokens: int | None = None
    """What a request may hold; None when unknown."""
    priced: bool = True
    """The cost of its calls will be known."""
    supports_schema: bool = False
    """Its provider can hold replies to a JSON Schema (``enforces`` says whether to this one)."""

    def enforces(self, schema: Mapping[str, Any]) -> bool:
        """Whether a request's ``json_schema`` binds the reply: providers take only schemas of objects."""
        return self.supports_schema and schema.get("type") == "object"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a model cannot be called; a sentinel that needs it is skipped (spec sentinels 1, 7)."""

    model: str
    code: Literal["unknown-model", "unknown-provider", "missing-key"]
    reason: str
    hint: str


def require(found: ModelInfo | Unavailable) -> ModelInfo:
    """What ``check`` found, when the model can be called.

    Raises:
        ModelCallFailed: Not retriable; the reason is the check's own. An id without ``/`` passes the
            check and fails here, at its first call (spec sentinels 7).
    """
    if isinstance(found, Unavailable):
        raise ModelCallFailed(found.model, found.reason, retriable=False)
    if not found.provider:
        raise ModelCallFailed(found.model, "No LLM provider available", retriable=False)
    return found


class ModelClient(Protocol):
    """Answers requests. Implementations are safe to call from many tasks at once."""

    def check(self, model: str) -> ModelInfo | Unavailable:
        """Can this model be called here? No network, no import of a provider's package."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply; raises ``ModelCallFailed`` for every failure of the call."""
        ...
