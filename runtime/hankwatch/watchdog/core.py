"""The pure core of the loop watchdog: an agent's stream in, what to do about it out (spec watchdog 6.3)."""

from collections.abc import Sequence
from typing import assert_never

from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.signals import (
    Action,
    Call,
    Delta,
    Interrupt,
    Nudge,
    Result,
    Retry,
    RoundEnd,
    RoundStart,
    Signal,
    TurnStart,
)
from hankwatch.watchdog.signatures import answered, asked
from hankwatch.watchdog.speech import Said
from hankwatch.watchdog.turn import Round, Turn

MAX_ROUND_CALLS = 256
"""A response with more calls is judged by its first ones."""


class WatchdogCore:
    """One agent's watchdog; a sub-agent has its own. No clock, no I/O: instants are arguments.

    A delta or a call outside a round opens one, and a round that is open when the next one starts ends there.
    """

    __slots__ = ("_here", "_policy", "_rounds", "_turn")

    def __init__(self, policy: WatchdogPolicy) -> None:
        self._policy = policy
        self._rounds = 0
        self._turn = Turn(policy)
        self._here: Round | None = None

    @property
    def rounds(self) -> int:
        """Rounds that have begun, over all turns."""
        return self._rounds

    def feed(self, signal: Signal, at_s: float) -> Sequence[Action]:
        """Take what happened at ``at_s`` (monotonic seconds).

        Gives what the host is to do at once: nothing, or one action. Text of a round that was broken, and
        calls and answers of one that was aborted, are ignored until the next round or retry.
        """
        actions: Sequence[Action] = ()
        match signal:
            case Delta():
                here = self._here or self._start_round()
                if here.listening and (said := self._turn.speech.feed(signal.channel, signal.text)):
                    actions = self._break(said, here, at_s)
            case Call():
                actions = self._call(signal, at_s)
            case Result():
                self._result(signal)
            case RoundEnd():
                actions = self._end_round(at_s)
            case RoundStart():
                actions = self._end_round(at_s)
                self._start_round()
            case Retry():
                self._retry()
            case TurnStart():
                self._turn, self._here = Turn(self._policy), None
            case _:
                assert_never(signal)
        return actions

    def _start_round(self) -> Round:
        self._rounds += 1
        self._here = self._turn.start_round(self._rounds)
        return self._here

    def _call(self, call: Call, at_s: float) -> Sequence[Action]:
        here = self._here or self._start_round()
        said = self._turn.speech.flush(end=False) if here.listening else None
        actions = self._break(said, here, at_s) if said else ()
        if not here.ignored and call.id not in here.asked and len(here.asked) < MAX_ROUND_CALLS:
            here.asked[call.id] = asked(call, self._policy.tool_classes)
        return actions

    def _result(self, result: Result) -> None:
        here = self._here
        if here and not here.ignored and result.id in here.asked and result.id not in here.answered:
            here.answered[result.id] = answered(here.asked[result.id], result)

    def _retry(self) -> None:
        here = self._here
        if here and not here.ignored:
            self._turn.speech.restore(here.before)
            self._here = self._turn.start_round(here.number)
            self._here.nudged = here.nudged

    def _end_round(self, at_s: float) -> Sequence[Action]:
        here, turn = self._here, self._turn
        if here is None:
            return ()
        said = turn.speech.flush(end=True) if here.listening else None
        actions = self._break(said, here, at_s) if said else ()
        self._here = None
        if here.ignored:
            return actions
        turn.end_round(here)
        return actions if here.nudged else self._escalate(here, at_s)

    def _break(self, said: Said, here: Round, at_s: float) -> Sequence[Action]:
        policy, turn = self._policy, self._turn
        turn.speech.clear()
        here.before, here.listening = turn.speech.evidence(), False
        trigger, detail = said.repetition.trigger, {"count": said.repetition.count, "channel": said.channel}
        if turn.breaks < policy.max_think_nudges:
            here.nudged, here.ignored = True, policy.mode == "act"
            turn.nudged(at_s)
            turn.breaks += 1
            return (Nudge("break_loop", policy.break_loop_text, here.number, trigger, turn.breaks, detail),)
        turn.listens = False
        if not policy.interrupt_on_cap:
            return ()
        turn.over = here.ignored = True
        return (Interrupt(here.number, trigger, detail),)

    def _escalate(self, here: Round, at_s: float) -> Sequence[Action]:
        turn = self._turn
        trigger, detail = next(turn.armed(), (None, {}))
        if trigger is None or turn.held_back(at_s):
            return ()
        turn.escalated(at_s)
        return (Nudge("escalation", self._policy.nudge_text, here.number, trigger, turn.escalations, detail),)
