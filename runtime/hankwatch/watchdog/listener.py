"""From a codon's events to the core of the loop watchdog, and from its actions to events and the agent (spec watchdog 0)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, assert_never

from hankwatch.events.activity import ToolOutcome
from hankwatch.events.envelope import Event
from hankwatch.events.observers import WatchdogInterrupt, WatchdogNudge
from hankwatch.events.payload import Payload
from hankwatch.watchdog.core import WatchdogCore
from hankwatch.watchdog.policy import ToolClass, WatchdogPolicy
from hankwatch.watchdog.rounds import Rounds
from hankwatch.watchdog.signals import Action, Channel, Interrupt, Nudge, Signal

RETRY_CODE = "transport-retry"
"""Of the ``info`` that tells of a model request sent again."""
MAX_AGENTS = 32
"""Agents watched side by side in one codon; the sub-agent that was watched first makes room for another."""
_CHANNELS: Mapping[str, Channel] = {"thinking": "thinking", "message": "text"}


class Steering(Protocol):
    """How the watchdog reaches an agent. Neither call may wait."""

    def nudge(self, kind: Literal["escalation", "break_loop"], text: str) -> bool:
        """Say ``text`` to the agent; False when it can take nothing while it works, nor be resumed."""
        ...

    def interrupt(self, trigger: str) -> None:
        """End the agent's turn as a user's stop would, with ``trigger`` as the reason."""
        ...


@dataclass(frozen=True, slots=True)
class _Agent:
    rounds: Rounds
    core: WatchdogCore


class Watchdog:
    """A codon's loop watchdog: a listener of the bus, the only one that may act, through ``steering`` alone.

    Each sub-agent has a core of its own, known by the call that started it. Nothing can be said to a
    sub-agent, so its loops are told as events only. Every call happens on the loop's thread.
    """

    def __init__(
        self,
        policy: WatchdogPolicy,
        codon_id: str,
        *,
        emit: Callable[[Payload], object],
        steering: Steering | None = None,
        tool_classes: Mapping[str, ToolClass] | None = None,
    ) -> None:
        """Watch the events of ``codon_id``, a runtime id.

        Without ``steering``, or in mode ``observe``, nothing is done but telling. ``tool_classes`` is what
        is known of the agent program's tools (``TOOL_CLASSES``); the policy's own go before it.
        """
        self._codon_id = codon_id
        self._emit = emit
        self._steering = steering if policy.mode == "act" else None
        self._classes = dict(tool_classes or {})
        self._observing = policy.model_copy(update={"mode": "observe"})
        self._policy = policy if self._steering else self._observing
        self._agents: dict[str | None, _Agent] = {}
        self._earlier_rounds = 0

    @property
    def rounds(self) -> int:
        """Rounds of the main agent that have begun, those of earlier attempts included."""
        main = self._agents.get(None)
        return self._earlier_rounds + (main.core.rounds if main is not None else 0)

    def on_event(self, event: Event) -> None:
        """Take an event; those of other codons, and what is no part of a conversation, are ignored.

        An ``info`` names no codon: it belongs to the one that is watched while it comes.
        """
        data = event.data
        if event.type != "info" and data.get("codonId") != self._codon_id:
            return
        parent, at_s = data.get("parentToolUseId"), event.at_ms / 1_000
        match event.type:
            case "codon.started":
                self._earlier_rounds = self.rounds
                self._agents.clear()
            case "assistant.action" if data["action"] == "tool_use":
                rounds, name = self._agent(parent).rounds, data.get("toolName", "")
                call = rounds.call(
                    data.get("toolUseId", event.id), name, data.get("toolInput", {}), self._classes.get(name)
                )
                self._feed(parent, call, at_s)
            case "assistant.action":
                message = self._agent(parent).rounds.message(_CHANNELS[data["action"]], data["content"])
                self._feed(parent, message, at_s)
            case "tool.result":
                flagged: ToolOutcome = "error" if data["isError"] else "ok"  # all that 0.10 journals say
                outcome: ToolOutcome = data.get("outcome", flagged)
                result = self._agent(parent).rounds.result(
                    data["toolUseId"], outcome, data["result"], data.get("fingerprint")
                )
                self._feed(parent, result, at_s)
            case "info" if data.get("code") == RETRY_CODE:
                self._feed(None, self._agent(None).rounds.retry(), at_s)

    def delta(self, channel: Channel, text: str, at_s: float) -> None:
        """Take what the main agent streams, ahead of the event that repeats it whole; ``at_s`` is stream time."""
        self._feed(None, self._agent(None).rounds.delta(channel, text), at_s)

    def asked_anew(self) -> None:
        """The main agent's response was cancelled and it was asked again, as a nudge may need; not for a steered one."""
        self._agent(None).rounds.cancel()

    def _agent(self, parent: str | None) -> _Agent:
        if parent not in self._agents:
            if len(self._agents) >= MAX_AGENTS:
                self._agents.pop(next(one for one in self._agents if one is not None))
            core = WatchdogCore(self._policy if parent is None else self._observing)
            self._agents[parent] = _Agent(Rounds(), core)
        return self._agents[parent]

    def _feed(self, parent: str | None, signals: Iterable[Signal], at_s: float) -> None:
        core = self._agent(parent).core
        for signal in signals:
            for action in core.feed(signal, at_s):
                self._do(parent, action)

    def _do(self, parent: str | None, action: Action) -> None:
        detail = dict(action.detail) if parent is None else {**action.detail, "parentToolUseId": parent}
        steering = self._steering if parent is None else None
        told: dict[str, Any] = {"codon_id": self._codon_id, "round": action.round, "trigger": action.trigger}
        told["observed"] = None if steering else True
        match action:
            case Nudge():
                delivered = steering.nudge(action.kind, action.text) if steering else not self._steering
                self._emit(
                    WatchdogNudge(
                        **told,
                        kind=action.kind,
                        text=action.text,
                        nudges_this_turn=action.nudges_this_turn,
                        detail=detail,
                        delivered=None if delivered else False,
                    )
                )
            case Interrupt():
                self._emit(WatchdogInterrupt(**told, detail=detail))
                if steering:
                    steering.interrupt(action.trigger)
            case _:
                assert_never(action)
