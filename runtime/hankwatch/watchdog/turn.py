"""What is known of a turn and of the round in it (spec watchdog 6.1, 6.3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hankwatch.watchdog.calls import Calls
from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.progress import OUTSIDE, Progress
from hankwatch.watchdog.sentences import Evidence
from hankwatch.watchdog.signals import Trigger
from hankwatch.watchdog.signatures import Asked, Signature, unanswered
from hankwatch.watchdog.speech import Speech

_MIN_STREAK_ROUNDS = 2
"""A model that fails six guesses in one batch has not repeated anything."""


@dataclass(slots=True)
class Round:
    """One response of the model and its calls."""

    number: int
    before: tuple[Evidence, Evidence]
    """What had been said when it began."""
    ignored: bool
    """The watchdog has aborted it, or is done with this turn."""
    listening: bool
    """Whether its text is looked at."""
    nudged: bool = False
    """Its text has brought a nudge; its end brings no second one."""
    asked: dict[str, Asked] = field(default_factory=dict)
    """By call id."""
    answered: dict[str, Signature] = field(default_factory=dict)
    """By call id, in the order in which the answers arrived."""

    def calls(self) -> list[Signature]:
        """Every call, the unanswered ones last."""
        left = [(call_id, call) for call_id, call in self.asked.items() if call_id not in self.answered]
        return [*self.answered.values(), *(unanswered(call, call_id, self.number) for call_id, call in left)]


class Turn:
    """From a real user message to the agent's stop."""

    __slots__ = (
        "_calls",
        "_fresh_calls",
        "_nudged_at_s",
        "_policy",
        "_progress",
        "_rounds_since_nudge",
        "breaks",
        "escalations",
        "listens",
        "over",
        "speech",
    )

    def __init__(self, policy: WatchdogPolicy) -> None:
        self._policy = policy
        self._calls = Calls(policy)
        self._progress = Progress()
        self._fresh_calls = False
        self._nudged_at_s: float | None = None
        self._rounds_since_nudge = 0
        self.speech = Speech(policy)
        self.listens = bool(policy.strict or policy.loose)
        """Whether sentences are looked at; not after the cap."""
        self.over = False
        """Interrupted: nothing counts until the next turn."""
        self.breaks = 0
        self.escalations = 0

    def start_round(self, number: int) -> Round:
        """A round, or a new attempt at one, as things stand."""
        return Round(number, self.speech.evidence(), ignored=self.over, listening=self.listens and not self.over)

    def end_round(self, ended: Round) -> None:
        """Count a round that was not aborted."""
        calls = ended.calls()
        self._progress.end_round(ended.number, calls)
        counted = [call for call in calls if call.outcome not in OUTSIDE]
        if self._calls.has_news(counted):
            self.speech.clear()
        self._calls.add_round(counted)
        if counted and self._calls.repetition:
            self._fresh_calls = True
        self._rounds_since_nudge += 1

    def nudged(self, at_s: float) -> None:
        """A nudge of either kind holds back the next escalation."""
        self._nudged_at_s, self._rounds_since_nudge = at_s, 0

    def escalated(self, at_s: float) -> None:
        """An escalation has told what was news until now."""
        self.nudged(at_s)
        self.escalations += 1
        self._fresh_calls = False
        self._progress.spoken_of()

    def held_back(self, at_s: float) -> bool:
        """Whether it is too early for another escalation, by rounds or by seconds."""
        if self._nudged_at_s is None:
            return False
        rounds_left = self._policy.refractory_rounds - self._rounds_since_nudge
        return rounds_left > 0 or at_s - self._nudged_at_s < self._policy.refractory_seconds

    def armed(self) -> Iterator[tuple[Trigger, Mapping[str, Any]]]:
        """The triggers that are armed and have news, the one to name first, each with what it found."""
        policy, progress, repetition = self._policy, self._progress, self._calls.repetition
        if repetition and self._fresh_calls:
            rule = "scattered" if repetition.scattered else "contiguous"
            yield "call_repetition", {"count": repetition.count, "tools": list(repetition.tools), "rule": rule}
        enough = 0 < policy.max_consecutive_errors <= progress.errors
        if enough and progress.fresh_error and progress.error_rounds >= _MIN_STREAK_ROUNDS:
            yield "error_streak", {"count": progress.errors, "tools": list(progress.tools)}
        if 0 < policy.max_rounds_without_success <= progress.idle_rounds and progress.fresh_idle:
            yield "no_progress", {"count": progress.idle_rounds, "tools": []}
