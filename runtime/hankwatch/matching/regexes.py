"""Authored regular expressions: JavaScript's meaning, never more than a bounded time (spec sentinels 2)."""

from collections.abc import Callable
from functools import lru_cache

from hankwatch.matching.jsregex import RegexInvalid, code_units, translate

__all__ = ["MATCH_LIMIT_MS", "Regex", "RegexInvalid", "compile_js"]

MATCH_LIMIT_MS = 50
"""How long a pattern that needs backtracking may search one text."""
_MAX_ATOMS = 20_000
"""The fallback engine writes repeats out when it compiles, about 0.5 KB for each atom."""

_CACHED = 128
"""Patterns; one can take 10 MB."""

_Search = Callable[[str], bool]


class Regex:
    """One compiled pattern of one owner; searches unanchored, as ``RegExp.test`` does."""

    __slots__ = ("_on_overrun", "_search", "linear")

    def __init__(self, search: _Search, on_overrun: Callable[[], None] | None, *, linear: bool) -> None:
        self._search = search
        self._on_overrun = on_overrun
        self.linear = linear
        """Whether a search takes time in proportion to the text, and so cannot run out of it."""

    def search(self, text: str) -> bool:
        """Whether the pattern occurs in ``text``; False, and the owner is told, when the time ran out."""
        try:
            return self._search(code_units(text))
        except TimeoutError:
            if self._on_overrun is not None:
                self._on_overrun()
            return False


def compile_js(pattern: str, on_overrun: Callable[[], None] | None = None) -> Regex:
    """A pattern in JavaScript's flavour (no flags), ready to search.

    Runs in linear time where google-re2 accepts it; lookaround and backreferences run in ``regex`` with
    ``MATCH_LIMIT_MS`` for each search, and ``on_overrun`` is called when that is over. Raises ``RegexInvalid``.
    """
    search, linear = _compile(pattern)
    return Regex(search, on_overrun, linear=linear)


@lru_cache(maxsize=_CACHED)
def _compile(pattern: str) -> tuple[_Search, bool]:
    import re2  # few configs have a pattern, and every command that reads one would pay for it

    translated, atoms = translate(pattern)
    options = re2.Options()
    options.log_errors = False
    # Searching starts at any byte, and \B holds between the bytes of one character: start at whole ones.
    whole_characters = f"^(?s:.*?)(?:{translated})" if r"\B" in translated else translated
    try:
        linear = re2.compile(whole_characters, options)
    except re2.error:
        return _compile_backtracking(translated, atoms), False
    # Bytes: the engine converts a str and maps offsets back, which nobody asks for here.
    return lambda text: linear.search(text.encode()) is not None, True


def _compile_backtracking(translated: str, atoms: int) -> _Search:
    if atoms > _MAX_ATOMS:
        raise RegexInvalid(f"repeats come to {atoms:,} characters; at most {_MAX_ATOMS:,} can be run")
    import regex  # fewer still need this one

    try:
        backtracking = regex.compile(translated, regex.VERSION0 | regex.ASCII)
    except (regex.error, RecursionError, OverflowError) as error:
        raise RegexInvalid(str(error)) from error
    return lambda text: backtracking.search(text, timeout=MATCH_LIMIT_MS / 1000) is not None
