"""Whether tool calls repeat: one sequence over and over, or one call again and again among others (spec watchdog 5.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.signatures import DIGEST_BYTES, Signature

_SLOW_FACTOR = 4
"""So many times more copies it takes where polling or waiting is part of the sequence."""
_SCATTERED_MORE = 2
_CHANGED, _WAITED = 1, 2
"""Of a call in the window: it succeeded in changing something; it only let time pass."""


@dataclass(frozen=True, slots=True)
class CallRepetition:
    """Calls that came too often."""

    count: int
    tools: tuple[str, ...]
    """The names of the sequence, in its order; one when ``scattered``."""
    scattered: bool
    """Among other calls, rather than one copy after the other."""


class Calls:
    """The calls of a turn, round by round."""

    __slots__ = ("_answers", "_copies", "_every", "_keys", "_marks", "_window", "_working", "repetition")

    def __init__(self, policy: WatchdogPolicy) -> None:
        self._copies = policy.copies
        self._window = policy.repeat_call_window
        # The window, oldest call first, as packed digests: objects would take most of an agent's memory.
        self._keys = self._answers = b""
        self._marks = b""
        self._every = _Tandem(policy.call_lengths)
        self._working = _Tandem(policy.call_lengths)
        self.repetition: CallRepetition | None = None
        """What repeats at the end of the calls so far; stays while no call is added."""

    def has_news(self, calls: Sequence[Signature]) -> bool:
        """Whether any of a round's calls, not yet added, succeeded in a way that is not in the window."""
        known = set(_digests(self._answers))
        return any(call.progresses and call.scattered not in known for call in calls)

    def add_round(self, calls: Sequence[Signature]) -> None:
        """Append the calls that a round made; equal ones count once, and their order within the round does not."""
        if not calls:
            return
        known = set(_digests(self._answers))
        once = sorted({call.contiguous: call for call in calls}.values(), key=lambda call: call.contiguous)
        for call in once:
            changed = call.tool_class == "mutate" and call.progresses and call.scattered not in known
            self._append(call, changed * _CHANGED | (call.tool_class == "wait") * _WAITED)
            self._every.append(call)
            if call.working:
                self._working.append(call)
        works = any(call.working for call in once)
        self.repetition = self._repetition(once, self._copies, works=works) if self._copies else None

    def _append(self, call: Signature, marks: int) -> None:
        size = self._window * DIGEST_BYTES
        self._keys = (self._keys + call.key)[-size:] if size else b""
        self._answers = (self._answers + call.scattered)[-size:] if size else b""
        self._marks = (self._marks + bytes([marks]))[-self._window :] if size else b""

    def _repetition(self, fresh: Sequence[Signature], copies: int, *, works: bool) -> CallRepetition | None:
        found = self._every.repetition(copies) or (self._working.repetition(copies) if works else None)
        scattered = (self._scattered(call, copies) for call in fresh)
        return found or next(filter(None, scattered), None)

    def _scattered(self, call: Signature, copies: int) -> CallRepetition | None:
        """The rule for a call that comes back among others, unless something else has moved meanwhile.

        To look again after waiting is to poll, whatever tool does the looking.
        """
        answers = _digests(self._answers)
        places = [place for place, answer in enumerate(answers) if answer == call.scattered]
        meanwhile = self._marks[places[-2] + 1 :] if len(places) > 1 else b""
        polls = call.slow or any(marks & _WAITED for marks in meanwhile)
        needed = copies * (_SLOW_FACTOR if polls else 1) + _SCATTERED_MORE
        if len(places) < needed:
            return None
        first = places[-needed]
        seen: dict[bytes, bytes] = {}
        for key, answer in zip(_digests(self._keys)[first:], answers[first:], strict=True):
            if seen.setdefault(key, answer) != answer:
                return None
        if any(marks & _CHANGED for marks in meanwhile):
            return None
        return CallRepetition(len(places), (call.name,), scattered=True)


class _Tandem:
    """The latest signatures, and for each length how far they equal those that stand so many before."""

    __slots__ = ("_latest", "_max_length", "_runs")

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length
        self._runs: list[int] = []
        self._latest: tuple[Signature, ...] = ()

    def append(self, call: Signature) -> None:
        if len(self._runs) < len(self._latest):  # only as many as there are calls to compare: a limit may be huge
            self._runs.append(0)
        for length, run in enumerate(self._runs, start=1):
            same = self._latest[-length].contiguous == call.contiguous
            self._runs[length - 1] = run + 1 if same else 0
        self._latest = (*self._latest, call)[-self._max_length :] if self._max_length else ()

    def repetition(self, copies: int) -> CallRepetition | None:
        """The shortest sequence that stands at the end often enough."""
        for length, run in enumerate(self._runs, start=1):
            found = run // length + 1
            if found < copies:
                continue
            block = self._latest[-length:]
            if found >= copies * (_SLOW_FACTOR if any(call.slow for call in block) else 1):
                return CallRepetition(found, tuple(call.name for call in block), scattered=False)
        return None


def _digests(packed: bytes) -> list[bytes]:
    return [packed[start : start + DIGEST_BYTES] for start in range(0, len(packed), DIGEST_BYTES)]
