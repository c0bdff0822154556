"""Whether anything succeeds: the error streak and the rounds without success (spec watchdog 6.1, 6.2)."""

from collections.abc import Sequence

from hankwatch.watchdog.signatures import Signature

OUTSIDE = frozenset({"infra", "cancelled"})
"""Outcomes that say nothing about the agent."""
_SHOWN_TOOLS = 5


class Progress:
    """The two counters of a turn, and whether they have moved since they were last spoken of."""

    __slots__ = ("_first_round", "_last_round", "errors", "fresh_error", "fresh_idle", "idle_rounds", "tools")

    def __init__(self) -> None:
        self.errors = 0
        """Failures in stream order since the last success."""
        self.idle_rounds = 0
        """Rounds in a row without a success."""
        self.tools: tuple[str, ...] = ()
        """The last few tools of the streak, latest last, each once."""
        self.fresh_error = False
        self.fresh_idle = False
        self._first_round = self._last_round = 0

    @property
    def error_rounds(self) -> int:
        """From the streak's first round to its last, both counted."""
        return self._last_round - self._first_round + 1 if self.errors else 0

    def end_round(self, number: int, calls: Sequence[Signature]) -> None:
        """Count a round; its calls in the order in which their answers arrived."""
        for call in calls:
            if call.outcome == "error":
                self._failed(number, call.name)
            elif call.succeeded:
                self.errors, self.tools = 0, ()
        if any(call.succeeded for call in calls):
            self.idle_rounds = 0
        elif not calls or any(call.outcome not in OUTSIDE for call in calls):
            self.idle_rounds += 1
            self.fresh_idle = True

    def spoken_of(self) -> None:
        """What came so far is no news any more."""
        self.fresh_error = self.fresh_idle = False

    def _failed(self, number: int, tool: str) -> None:
        if not self.errors:
            self._first_round = number
        self.errors += 1
        self._last_round = number
        self.fresh_error = True
        self.tools = (*(name for name in self.tools if name != tool), tool)[-_SHOWN_TOOLS:]
