"""What the core of the watchdog is fed, and what it asks for (spec watchdog 6.4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hankwatch.events.activity import ToolOutcome
from hankwatch.watchdog.policy import ToolClass

Channel = Literal["thinking", "text"]
"""Reasoning, or visible text."""
Trigger = Literal["call_repetition", "error_streak", "no_progress", "sentence_strict", "sentence_loose"]
"""What made the watchdog act."""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A real user message begins a turn; nudges, continuations, hooks and timers do not."""


@dataclass(frozen=True, slots=True)
class RoundStart:
    """The model begins a response; a round still open ends first."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of what the model writes, of any length."""

    channel: Channel
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool."""

    id: str
    """Unique within the round; the same one again is the same call."""
    name: str
    args: Mapping[str, Any] | str
    """Parsed, or the JSON text; a text that is no JSON counts as it stands."""
    tool_class: ToolClass | None = None
    """As the host's registry has it; the policy's ``tool_classes`` go before it."""


@dataclass(frozen=True, slots=True)
class Result:
    """A call of this round was answered; answers to other calls are ignored."""

    id: str
    outcome: ToolOutcome
    text: str = field(default="", repr=False)
    fingerprint: str | None = None
    """Of the whole text, where the host has cut it (``core.fingerprint``)."""


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """Every result is in, or the response had no calls."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The transport failed and the response starts anew: what came of it so far does not count."""


Signal = TurnStart | RoundStart | Delta | Call | Result | RoundEnd | Retry
"""One thing that happens in the stream of an agent."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """Say ``text`` to the agent.

    An ``escalation`` goes in after the round's results and before the next request. For ``break_loop`` the
    host cancels the request, drops the repeated text, adds this one and asks again.
    """

    kind: Literal["escalation", "break_loop"]
    text: str
    round: int
    """Rounds are numbered from 1, on over all turns."""
    trigger: Trigger
    nudges_this_turn: int
    """Nudges of this kind in this turn, this one included."""
    detail: Mapping[str, Any]
    """For logs: counts and tool names, never arguments or the agent's text."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the turn as a user's stop would."""

    round: int
    trigger: Trigger
    detail: Mapping[str, Any]


Action = Nudge | Interrupt
"""What the host is to do."""
