"""A few words said over and over without an end: the shortest period of a text (spec watchdog 5.3)."""

import re
from dataclasses import dataclass

MAX_PERIOD_CHARS = 80
MIN_REPEATS = 8
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Chant:
    """A text that is one unit repeated."""

    unit: str
    """The least rotation of the unit, so that texts cut at other places agree."""
    repeats: int


def chant(text: str, *, letters: bool = True) -> Chant | None:
    """The repetition that the whole text is, or None.

    The unit has at most 80 characters, stands at least 8 times (the last one may be cut) and, with
    ``letters``, has a letter.
    """
    period = _period(text)
    if period is None:
        return None
    unit = text[:period]
    if letters and not _LETTER.search(unit):
        return None
    # At most 80 rotations: comparing them all is simpler than finding the least in linear time (Booth 1980).
    least = min(unit[turn:] + unit[:turn] for turn in range(period))
    return Chant(least, len(text) // period)


def _period(text: str) -> int | None:
    """The smallest period, if it is short enough; equals n - pi(n) of the prefix function.

    A text has period p exactly if it begins with itself less its first p characters. Only short periods
    matter, so comparing for each, in C, takes less than the prefix function does in Python.
    """
    for period in range(1, min(MAX_PERIOD_CHARS, len(text) // MIN_REPEATS) + 1):
        if text.startswith(text[period:]):
            return period
    return None
