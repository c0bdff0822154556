"""Sentences from a stream of characters, cut equally wherever the chunks fall (spec watchdog 5.1).

A decision that needs the next character waits for it, so the segments of a text, and the character at which
each becomes known, do not depend on the deltas it arrives in.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hankwatch.watchdog.policy import MAX_SENTENCE_CHARS

MAX_LINE_CHARS = 2_000
"""A structural line longer than this is handed over raw and dropped."""
_STEP_CHARS = 1_024
"""Larger deltas are taken in parts, so that the buffer stays small."""
_FENCED_CHARS = 64
"""What is kept of a line inside a fence; the line that ends the fence is no longer."""

_MARKS = ".!?…。！？；"
_CLOSERS = "\"'”’»)]}）】」』》〉*_"
_MARK = re.compile(f"[\n{_MARKS}]")
_LETTER = re.compile(r"[^\W_]|\n")
_END = re.compile(rf"(?<![{_MARKS}])[{_MARKS}]++[{re.escape(_CLOSERS)}]*+(?:(?=\s)|(?<=[。！？；])(?=.))")
_ABBREVIATION = re.compile(
    r"(?:(?:^|[\s.(])[^\W\d_]|\b(?:al|approx|cf|dr|etc|fig|incl|mrs?|ms|prof|resp|vs))\Z", re.IGNORECASE
)
"""Before a full stop: a single letter (``e.g.``, initials) or an abbreviation; looked for in the last few characters."""
_ABBREVIATION_CHARS = 12
_LIST_NUMBER = re.compile(r"\W*\d+")
_FENCE = re.compile(r"[^\S\n]*(`{3,}|~{3,})")
_TABLE_OR_CODE = re.compile(r"[^\S\n]*\||(?: {4}|\t)\s*(?!(?:[-*+•]|\d{1,3}[.)])\s)\S")
_CODE_ENDS = ("{", "}", ";", "=", "(", "[", ",")


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a stream that has a letter or digit, or is raw."""

    text: str
    kind: Literal["sentence", "cut", "raw"]
    """``cut``: 400 characters without an end; ``raw``: the first 2,000 of a line that is no prose."""


class Segmenter:
    """One channel's segmenter; keeps at most the unfinished sentence or line."""

    __slots__ = (
        "_decides",
        "_fence",
        "_fences",
        "_letterless",
        "_line_start",
        "_quiet_chars",
        "_scanned",
        "_structural",
        "_text",
    )
    _text: str
    _decides: Callable[[str], re.Match[str] | None]

    def __init__(self, *, fences: bool) -> None:
        """With ``fences``, what stands between lines of three or more backticks or tildes is ignored."""
        self._fences = fences
        self.reset()

    def reset(self) -> None:
        """Begin a new stream, outside any fence."""
        self._fence = ""
        self._begin("", line_start=True)

    def feed(self, text: str) -> Sequence[Segment]:
        """The segments that this piece of the stream completes, in order."""
        whole = self._text + text
        if len(whole) < self._quiet_chars and not self._decides(text):
            self._text = whole
            return ()
        if len(text) > _STEP_CHARS:
            steps = range(0, len(text), _STEP_CHARS)
            return [segment for start in steps for segment in self.feed(text[start : start + _STEP_CHARS])]
        self._text = whole
        return list(self._segments())

    def flush(self, *, end: bool) -> Sequence[Segment]:
        """What is left, as far as it is a sentence; at the ``end`` of the stream a fence ends too."""
        text, found = self._text, []
        if not (self._fence or self._letterless or self._structural or self._is_fence(text) or self._is_table(text)):
            found = list(_last_of_line(text))
        if end:
            self._fence = ""
        self._begin("", line_start=True)
        return found

    def _begin(self, text: str, *, line_start: bool) -> None:
        """Go on with what is not segmented yet."""
        self._text = text
        self._line_start = line_start
        self._scanned = 0
        self._structural = False
        self._letterless = True
        self._wait(MAX_SENTENCE_CHARS)

    def _wait(self, chars: int) -> None:
        """Look again when so many characters are there, or one that may decide something."""
        self._quiet_chars = chars
        self._decides = _LETTER.search if self._letterless else _MARK.search

    def _segments(self) -> Iterator[Segment]:
        before = -1
        while before != len(self._text):  # every step that decides something shortens the text
            before = len(self._text)
            if self._fence:
                self._skip_fenced_lines()
            elif self._letterless:
                yield from self._up_to_the_first_letter()
            elif self._structural:
                yield from self._structural_line()
            else:
                yield from self._prose()

    def _skip_fenced_lines(self) -> None:
        line, newline, rest = self._text.partition("\n")
        if not newline:
            self._text = line[: _FENCED_CHARS + 1]
            self._wait(0)
            return
        mark = line.strip()
        if len(line) <= _FENCED_CHARS and mark.startswith(self._fence) and not mark.strip(mark[0]):
            self._fence = ""
        self._begin(rest, line_start=True)

    def _up_to_the_first_letter(self) -> Iterator[Segment]:
        text = self._text
        found = _LETTER.search(text, self._scanned, MAX_LINE_CHARS)
        if found is None:
            self._scanned = len(text)
            self._wait(MAX_LINE_CHARS)
            if len(text) >= MAX_LINE_CHARS:
                yield from self._drop_raw()
        elif found[0] == "\n":
            if self._is_fence(text):
                self._open_fence(found.start())
            else:
                self._begin(text[found.end() :], line_start=True)
        elif found.start() >= MAX_SENTENCE_CHARS:
            self._begin(text[found.start() :], line_start=False)
        else:
            self._letterless, self._scanned = False, found.start()
            self._wait(MAX_SENTENCE_CHARS)
            yield from self._prose()

    def _prose(self) -> Iterator[Segment]:
        text = self._text
        if self._is_fence(text):
            end = text.find("\n")
            if end >= 0:
                self._open_fence(end)
            self._wait(0)
            return
        end, kind = self._end()
        if end < 0:
            return
        if self._is_table(text[:end]):
            self._structural = True
            self._wait(MAX_LINE_CHARS)
            yield from self._structural_line()
        elif text[end : end + 1] == "\n" and kind == "line":
            self._begin(text[end + 1 :], line_start=True)
            yield from _last_of_line(text[:end])
        else:
            self._begin(text[end:], line_start=False)
            yield Segment(text[:end], "cut" if kind == "cut" else "sentence")

    def _end(self) -> tuple[int, Literal["sentence", "line", "cut", ""]]:
        """Where the sentence ends and why, or -1 and nothing."""
        text = self._text
        newline = text.find("\n", 0, MAX_SENTENCE_CHARS)
        for found in _END.finditer(text, self._scanned, MAX_SENTENCE_CHARS if newline < 0 else newline + 1):
            if not _goes_on(text, found):
                return found.end(), "sentence"
        if newline >= 0:
            return newline, "line"
        if len(text) >= MAX_SENTENCE_CHARS:
            space = text.rfind(" ", 0, MAX_SENTENCE_CHARS)
            return space if _LETTER.search(text, 0, max(space, 0)) else MAX_SENTENCE_CHARS, "cut"
        told = text.rstrip(_CLOSERS)
        self._scanned = len(told.rstrip(_MARKS)) if told.endswith(tuple(_MARKS)) else len(text)
        self._wait(MAX_SENTENCE_CHARS if self._scanned == len(text) else 0)
        return -1, ""

    def _structural_line(self) -> Iterator[Segment]:
        newline = self._text.find("\n", 0, MAX_LINE_CHARS)
        if newline >= 0:
            self._begin(self._text[newline + 1 :], line_start=True)
        elif len(self._text) >= MAX_LINE_CHARS:
            yield from self._drop_raw()

    def _drop_raw(self) -> Iterator[Segment]:
        text, structural = self._text, self._structural
        self._begin(text[MAX_LINE_CHARS:], line_start=False)
        if structural:
            self._structural, self._letterless = True, False
            self._wait(MAX_LINE_CHARS)
        yield Segment(text[:MAX_LINE_CHARS], "raw")

    def _is_table(self, text: str) -> bool:
        """Whether the line is a table row or indented code, as its beginning shows."""
        return self._line_start and _TABLE_OR_CODE.match(text) is not None

    def _is_fence(self, text: str) -> bool:
        """Whether the line opens a fence, or may do so as far as it has come."""
        found = _FENCE.match(text) if self._fences and self._line_start else None
        if found is None:
            return False
        line, newline, _ = text[found.end() : MAX_SENTENCE_CHARS].partition("\n")
        if not newline and len(text) >= MAX_SENTENCE_CHARS:
            return False
        return found[1][0] == "~" or "`" not in line

    def _open_fence(self, newline: int) -> None:
        found = _FENCE.match(self._text)
        self._fence = found[1] if found else ""
        self._begin(self._text[newline + 1 :], line_start=True)


def _goes_on(text: str, end: re.Match[str]) -> bool:
    """Whether what looks like the end of a sentence is none."""
    if end[0].rstrip(_CLOSERS) != ".":
        return False
    before = end.start()
    if _ABBREVIATION.search(text, max(0, before - _ABBREVIATION_CHARS), before):
        return True
    return _LIST_NUMBER.fullmatch(text, 0, before) is not None


def _last_of_line(text: str) -> Iterator[Segment]:
    """The rest of a line as a sentence, unless it is a table row or shaped like code."""
    is_code = text.isascii() and text.rstrip().endswith(_CODE_ENDS)
    if not is_code and text.count(" | ") < 2:
        yield Segment(text, "sentence")
