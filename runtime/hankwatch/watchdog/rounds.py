"""From whole messages, calls and answers to rounds: where one ends when nobody says so (spec watchdog 0)."""

from collections.abc import Iterator, Mapping
from typing import Any

from hankwatch.events.activity import ToolOutcome
from hankwatch.watchdog.core import MAX_ROUND_CALLS
from hankwatch.watchdog.policy import ToolClass
from hankwatch.watchdog.signals import Call, Channel, Delta, Result, Retry, RoundEnd, RoundStart, Signal


class Rounds:
    """One agent's actions as signals.

    A round ends when every call of it has its answer, or else when the next one shows: by a second message, or
    by anything said after a call. Only then is it known that a message had no calls, or an answer does not come.
    """

    __slots__ = ("_called", "_inside", "_said", "_streamed", "_unanswered")

    _inside: bool
    _called: bool
    _said: bool
    _unanswered: set[str]

    def __init__(self) -> None:
        self._streamed: set[Channel] = set()
        self._begin(inside=False)

    def delta(self, channel: Channel, text: str) -> Iterator[Signal]:
        """A piece of a message that will come whole as well."""
        yield from self._say(channel)
        self._streamed.add(channel)
        yield Delta(channel, text)

    def message(self, channel: Channel, text: str) -> Iterator[Signal]:
        """A whole message, or the end of the one whose deltas came before; then ``text`` is not looked at again."""
        if channel in self._streamed:
            self._streamed.remove(channel)
        else:
            yield from self._say(channel)
            yield Delta(channel, text)
        yield Delta(channel, "\n")
        self._said = self._said or channel == "text"

    def call(self, call_id: str, name: str, args: Mapping[str, Any], tool_class: ToolClass | None) -> Iterator[Signal]:
        """A call; several in a row are one round, until an answer to the last open one."""
        if not self._inside or len(self._unanswered) >= MAX_ROUND_CALLS:
            yield from self._next()
        self._called = True
        self._unanswered.add(call_id)
        yield Call(call_id, name, args, tool_class)

    def result(self, call_id: str, outcome: ToolOutcome, text: str, fingerprint: str | None) -> Iterator[Signal]:
        """An answer; one to a call of an earlier round is ignored."""
        if call_id not in self._unanswered:
            return
        self._unanswered.remove(call_id)
        yield Result(call_id, outcome, text, fingerprint)
        if not self._unanswered:
            self._begin(inside=False)
            yield RoundEnd()

    def cancel(self) -> None:
        """The response was cancelled and the model is asked anew: what comes next is another round."""
        self._streamed.clear()
        self._begin(inside=False)

    def retry(self) -> Iterator[Signal]:
        """The model's response begins anew; without deltas of it there is nothing to undo."""
        if self._streamed:
            self._streamed.clear()
            yield Retry()

    def _say(self, channel: Channel) -> Iterator[Signal]:
        if not self._inside or self._called or (self._said and channel == "text"):
            yield from self._next()

    def _next(self) -> Iterator[Signal]:
        self._begin(inside=True)
        yield RoundStart()

    def _begin(self, *, inside: bool) -> None:
        self._inside = inside
        self._called = self._said = False
        self._unanswered = set()
