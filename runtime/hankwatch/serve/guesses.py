"""Wrong tokens given at the login: a few are slips of the hand, more from one address wait."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from hankwatch.core.clock import Clock

GUESSES: Final = 10
"""Wrong tokens of one address within ``WINDOW_S``."""
WINDOW_S: Final = 60.0
_MOST: Final = 1_000
"""Addresses that are remembered; the oldest makes room."""


@dataclass(slots=True)
class Guesses:
    """Who has guessed how often; used on the loop's thread."""

    clock: Clock
    _wrong: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)
    """By address: how many, and since when."""

    def wait_s(self, address: str) -> float:
        """How long nothing from there is looked at; 0 when it is."""
        count, since_s = self._wrong.get(address, (0, 0.0))
        return max(0.0, since_s + WINDOW_S - self.clock.monotonic()) if count >= GUESSES else 0.0

    def add(self, address: str) -> None:
        """One more was wrong."""
        now_s = self.clock.monotonic()
        count, since_s = self._wrong.get(address, (0, now_s))
        self._wrong[address] = (count + 1, since_s) if now_s - since_s < WINDOW_S else (1, now_s)
        while len(self._wrong) > _MOST:
            self._wrong.popitem(last=False)
