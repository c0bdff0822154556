"""Globs of a hank, matched against paths of the workspace: one dialect for everything that takes globs."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from itertools import islice
from typing import Final

_MAX_ALTERNATIVES: Final = 100
_MAGIC: Final = re.compile(r"[*?\[]")
_Segment = re.Pattern[str] | None
"""What one path component must be; None for ``**``, any number of them."""


class Globs:
    """``*``, ``?``, ``[…]`` within one path component, ``**`` for any number of them, ``{a,b}``.

    A pattern is anchored at the workspace: ``*.md`` means the notes there, ``**/*.md`` those at any depth. One
    whose last component has no wildcard also takes what lies below the folder it may name. Names that begin with
    a dot are like others. Matching takes time linear in path and pattern.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._alternatives = [segments for pattern in self.patterns for segments in _compile(pattern)]

    def __bool__(self) -> bool:
        return bool(self._alternatives)

    def match(self, path: str) -> bool:
        """Whether ``path``, relative and normal, is taken."""
        parts = path.split("/")
        return any(len(one) in _walk(one, parts) for one in self._alternatives)

    def reach(self, folder: str) -> bool:
        """Whether anything below ``folder`` can match; the empty name is the workspace itself."""
        parts = folder.split("/") if folder else []
        return any(position < len(one) for one in self._alternatives for position in _walk(one, parts))


def _compile(pattern: str) -> Iterator[tuple[_Segment, ...]]:
    for one in islice(_alternatives(pattern), _MAX_ALTERNATIVES):
        parts = [part for part in posixpath.normpath(one).split("/") if part]
        segments = tuple(None if part == "**" else re.compile(translate(part)) for part in parts)
        if parts in ([], ["."]):
            yield (None,)
            continue
        yield segments
        if not _MAGIC.search(parts[-1]):
            yield (*segments, None)


def _alternatives(pattern: str) -> Iterator[str]:
    """``{a,b}`` written out."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        yield pattern
        return
    for option in braces[1].split(","):
        yield from _alternatives(pattern[: braces.start()] + option + pattern[braces.end() :])


def _walk(segments: tuple[_Segment, ...], parts: list[str]) -> set[int]:
    """Every position of the pattern at which ``parts`` may have ended."""
    positions = _open(segments, {0})
    for part in parts:
        step = {at if segments[at] is None else at + 1 for at in positions if _takes(segments, at, part)}
        positions = _open(segments, step)
    return positions


def _takes(segments: tuple[_Segment, ...], at: int, part: str) -> bool:
    if at == len(segments):
        return False
    segment = segments[at]
    return segment is None or segment.match(part) is not None


def _open(segments: tuple[_Segment, ...], positions: set[int]) -> set[int]:
    """``positions``, and those behind a ``**`` that takes nothing more."""
    reached = set(positions)
    for at in sorted(positions):
        while at < len(segments) and segments[at] is None:
            at += 1  # noqa: PLW2901 - walks on from where it began
            reached.add(at)
    return reached
