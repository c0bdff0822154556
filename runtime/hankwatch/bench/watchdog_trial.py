"""``try`` with a loop watchdog: what it would do on recorded events, in virtual time (spec cli)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hankwatch.agents.detect import ENVELOPE
from hankwatch.bench.sources import Source
from hankwatch.bench.stepping import steps
from hankwatch.core.clock import StreamTime, Timers
from hankwatch.core.errors import InfrastructureError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event, IdSource
from hankwatch.events.observers import WatchdogInterrupt, WatchdogNudge
from hankwatch.events.payload import Payload
from hankwatch.stream.bus import ListenerFailure
from hankwatch.stream.stream import EventStream
from hankwatch.watchdog import Watchdog, WatchdogPolicy
from hankwatch.watchdog.tool_classes import classes_of

_BEGINS = frozenset({"codon.started", "assistant.action", "tool.result"})
"""Types with which there is something to watch in a codon."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that the watchdog would have done."""

    told: WatchdogNudge | WatchdogInterrupt
    """As a run journals it."""
    event: Event
    """What made it act."""

    @property
    def kind(self) -> str | None:
        """``escalation`` or ``break_loop``; None for an interrupt."""
        return self.told.kind if isinstance(self.told, WatchdogNudge) else None

    @property
    def action(self) -> str:
        """``nudge`` or ``interrupt``."""
        return "nudge" if isinstance(self.told, WatchdogNudge) else "interrupt"

    def as_json(self) -> dict[str, Any]:
        """Its line of ``try --json``."""
        return {
            "round": self.told.round,
            "trigger": self.told.trigger,
            "action": self.action,
            "kind": self.kind,
            "eventId": self.event.id,
            "evidence": dict(self.told.detail),
        }


@dataclass(slots=True)
class WatchdogTrial:
    """One watchdog on one recording; it observes, as the recording goes on as it did."""

    policy: WatchdogPolicy
    events: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """Of each action, how often."""
    _watchdogs: dict[str, Watchdog] = field(default_factory=dict)
    """By runtime id of the codon; the one that is watched now is the last."""
    _program: str = ""
    _told: list[Payload] = field(default_factory=list)
    _acts: list[Act] = field(default_factory=list)
    _failure: Exception | None = None

    def acts(self, source: Source, redactor: Redactor) -> Iterator[Act]:
        """Play ``source``; each act in order, as it happens.

        Raises:
            UsageError: the recording cannot be read to its end, or lacks the codon asked for.
        """
        self._program, time = source.program, StreamTime()
        stream = EventStream(
            None,
            time=time,
            timers=Timers(),
            redactor=redactor,
            ids=IdSource(0),
            on_failure=_no_journal,
            on_listener_failure=self._fail,
        )
        stream.subscribe(self._on_event, name="watchdog")
        for _ in steps(source, stream, time, one_scope=True):
            if self._failure is not None:
                raise self._failure
            yield from self._acts
            self._acts.clear()

    def summary(self) -> dict[str, int]:
        """The last line of ``try --json``."""
        rounds = sum(watchdog.rounds for watchdog in self._watchdogs.values())
        return {"rounds": rounds, "nudges": self.counts["nudge"], "interrupts": self.counts["interrupt"]}

    def _on_event(self, event: Event) -> None:
        self.events += 1
        codon = str(event.data.get("codonId", ""))
        if event.type in _BEGINS and codon not in self._watchdogs:
            program = "" if self._program == ENVELOPE else self._program
            self._watchdogs[codon] = Watchdog(
                self.policy, codon, emit=self._told.append, tool_classes=classes_of(program)
            )
        watched = list(self._watchdogs)[-1:] if event.type == "info" else [codon]
        for one in watched:
            if one in self._watchdogs:
                self._watchdogs[one].on_event(event)
        for told in self._told:
            assert isinstance(told, WatchdogNudge | WatchdogInterrupt)
            self._acts.append(act := Act(told, event))
            self.counts[act.action] += 1
        self._told.clear()

    def _fail(self, failure: ListenerFailure) -> None:
        self._failure = failure.error


def _no_journal(error: InfrastructureError) -> None:
    raise error  # there is no journal here that could fail
