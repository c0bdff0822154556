"""What an agent program said, in one vocabulary: the values between a dialect and the translator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Channel = Literal["message", "thinking"]
"""Visible text, or reasoning."""

CallOutcome = Literal["ok", "error", "denied", "cancelled", "infra"]
"""How a tool call ended (spec watchdog 6.1): ``error`` alone is the tool's own failure."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A count of tokens; the four kinds are disjoint, so their sum is what was processed."""

    input: int = 0
    """Input that was neither read from nor written to a cache."""
    output: int = 0
    """Generated, reasoning included where the program states it."""
    cache_creation: int = 0
    cache_read: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_creation + other.cache_creation,
            self.cache_read + other.cache_read,
        )

    def beyond(self, other: "Tokens") -> "Tokens":
        """What this count has more than ``other``, per kind, never below zero."""
        return Tokens(
            max(0, self.input - other.input),
            max(0, self.output - other.output),
            max(0, self.cache_creation - other.cache_creation),
            max(0, self.cache_read - other.cache_read),
        )


@dataclass(frozen=True, slots=True)
class Started:
    """The program named its session; may come several times in one process."""

    session_id: str
    """Empty while it has no name yet."""
    model: str | None = None
    numbers_anew: bool = False
    """The ids that follow are unique within this process only, although the session may be an older one."""


@dataclass(frozen=True, slots=True)
class Spoke:
    """The agent wrote a whole piece of text or reasoning."""

    kind: Channel
    text: str
    parent: str | None = None
    """Tool-use id of the sub-agent's call, None for the main agent."""
    message_id: str = ""
    """With an id, the same text of the same message again is a replayed copy; empty when there is none."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A piece of what the main agent is writing, ahead of the ``Spoke`` that has it whole."""

    kind: Channel
    text: str


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """A tool call was made."""

    id: str
    """Unique within the session."""
    name: str
    input: Mapping[str, Any]
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call ended."""

    id: str
    text: str
    """The whole result; the translator cuts it."""
    outcome: CallOutcome = "ok"
    is_error: bool = False
    """The block's error flag, an error object, or a non-zero exit code that the stream states."""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one model had a part in."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    """None when the program does not say."""

    def __add__(self, other: "ModelUse") -> "ModelUse":
        costs = [use.cost_usd for use in (self, other) if use.cost_usd is not None]
        return ModelUse(self.tokens + other.tokens, sum(costs) if costs else None)


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens and money, as the program states them.

    Several of the same ``message_id`` are one message seen again: the last wins, nothing adds up. A
    ``total`` is the program's own sum over everything since its last such sum; it corrects what the
    messages said.
    """

    tokens: Tokens
    message_id: str = ""
    model: str | None = None
    cost_usd: float | None = None
    """None when the program does not say; never 0 for unknown."""
    total: bool = False
    by_model: Mapping[str, ModelUse] = field(default_factory=dict)
    """The same, split by model, where a ``total`` states it."""
    session: str = ""
    """Set when a ``total`` runs over this whole session, processes before included: only its growth counts."""


@dataclass(frozen=True, slots=True)
class Retried:
    """The program retries a failed model request by itself."""

    message: str


@dataclass(frozen=True, slots=True)
class Reported:
    """The program reported a problem without ending: evidence, not a verdict."""

    message: str
    severity: Literal["warning", "error"] = "error"


@dataclass(frozen=True, slots=True)
class ContextExceeded:
    """The conversation no longer fits the model's context, or the answer its output (reference 3.4, last point)."""

    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """The program stated how its turn ended; may come several times, the last counts."""

    success: bool
    """What the line's main word says (``subtype``, ``status``); it can lie, see ``agents.outcome``."""
    is_error: bool = False
    """A separate error flag, where the program has one."""
    text: str = ""
    """The final answer, or the error's text."""
    subtype: str = ""
    """The main word itself."""
    terminal_reason: str = ""
    """Why the turn ended, where the program says: ``completed``, ``max_turns``, …"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event of our own envelope, played or printed by another program."""

    type: str
    data: Mapping[str, Any]
    id: str = ""
    """The foreign id; the same one twice is one event."""


@dataclass(frozen=True, slots=True)
class Junk:
    """A line that is not of the dialect: banner, truncated, not JSON. Counted, never fatal."""

    line: bytes = field(repr=False)
    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A well-formed line that is not for the program to tell, or that tells of what was there before it."""

    reason: str
    """What it is counted under, e.g. ``runtime_events``."""


Signal = (
    Started
    | Spoke
    | Streamed
    | ToolUsed
    | ToolFinished
    | Used
    | Retried
    | Reported
    | ContextExceeded
    | Result
    | Recorded
    | Junk
    | LeftOut
)
"""One thing an agent said; the union is closed."""
