"""What a sentence is compared by: its strict key, its content words, and whether it is prose at all (spec watchdog 5.2)."""

import re
import string
import unicodedata
from itertools import islice, pairwise

from hankwatch.watchdog.words import EMPTY_WORDS

_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd]"
)
"""Takes two columns."""
_CJK = "\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003fffd"
"""Written without spaces, or with few."""
_CJK_RUN = re.compile(f"[{_CJK}]+")
_MARKER = re.compile(r"\s*(?:(?:[-*+•◦‣·–—]|#{1,6}|>+|\d{1,3}[.)]|\[[ xX]\])(?=\s|\Z)\s*)*")
_ZERO_WIDTH = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_EMPHASIS_CHARS = frozenset("*`~_")
_EMPHASIS = re.compile(r"[*`]+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_OUTER = string.punctuation + " …。，、！？；：·•—–“”‘’«»「」『』（）《》〈〉【】"
_BOX = re.compile("[\u2500-\u259f]")
_NO_PROSE = re.compile(
    r"""
      [<{\[|]|>>>|//|/\*|\#[!\w]|\$\s|@\w                                       # markup, data, comments, prompts
    | \[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d)                                     # a log's stamp
    | (?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b\]?:?\s    # a log's level
    | (?:error|warning)(?:\[\w+\])?:\s | \w+(?:Error|Exception|Warning):\s         # a compiler's or an interpreter's word
    | (?:def|class|fn|func|function)\s+\w+\s*[(:{<]
    | (?:const|let|var)\s+\w+\s*[:=]
    | (?:import|from)\s+[\w.{*"']+(?:\s+(?:import|as|from)\s|\s*;?\s*$)
    | [\w.\[\]]+\s*(?::?=|\+=|->|=>)\s
    | \S+:\d+:
    """,
    re.VERBOSE,
)
_MARK_OF_WORDS = "\u0300-\u036f\u0600-\u06ff\u0900-\u0fff\u1000-\u109f\u1780-\u17ff"
"""Vowel signs and the like, which Python does not count as letters."""
_LETTERS = f"(?:[^\\W\\d_]|[{_MARK_OF_WORDS}])"
_PLAIN_WORD = re.compile(rf"(?<!\S)[\"'“‘«(\[]*{_LETTERS}{_LETTERS}+(?:['’-]{_LETTERS}+)*[\"'”’»)\],.;:!?…]*(?!\S)")
_NO_LETTER = re.compile(rf"[\W\d_](?<![{_MARK_OF_WORDS}])")
_MIN_WORDS = 5
_MIN_CJK_CHARS = 8
_MIN_LETTERS = 0.6

_WORD_CHAR = rf"[^\W{_CJK}]"
_TOKEN = re.compile(rf"[{_CJK}]+|{_WORD_CHAR}(?:(?:{_WORD_CHAR}|[./:'’-])*{_WORD_CHAR})?")
_MIN_CONTENT = 3
_SUFFIX = re.compile(r"(?<=[a-z]{3})(?:ing|edly|ied|ies|ed|es|ly|e|s|y)$")


def unmarked(text: str) -> str:
    """The sentence without markup: NFKC, white space collapsed; markers, emphasis and zero-width characters are gone."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ZERO_WIDTH.sub("", text))
    marker = _MARKER.match(text)
    text = text[marker.end() :] if marker else text
    if not _EMPHASIS_CHARS.isdisjoint(text):
        text = _EMPHASIS.sub("", text)
    return " ".join(text.split())


def strict_key(plain: str) -> str:
    """What two unmarked sentences have in common when they are the same: casefolded, no outer punctuation."""
    return plain.casefold().strip(_OUTER)


def content_words(key: str) -> frozenset[str] | None:
    """The words of a strict key that carry its meaning; None when they are too few to compare by.

    Function words and an agent's filler are gone, Latin words have lost a light suffix, CJK counts as pairs
    of characters, numbers and identifiers stay whole.
    """
    words: set[str] = set()
    for token in _TOKEN.findall(key):
        if _CJK_RUN.fullmatch(token):
            words.update([token] if len(token) == 1 else map("".join, pairwise(token)))
        elif token not in EMPTY_WORDS:
            words.add(_SUFFIX.sub("", token) if token.isascii() and token.isalpha() else token)
    return frozenset(words) if len(words) >= _MIN_CONTENT else None


def width(key: str) -> int:
    """Columns on a terminal; CJK takes two."""
    return len(key) if key.isascii() else len(key) + len(_WIDE.findall(key))


def is_prose(plain: str, key: str) -> bool:
    """Whether an unmarked sentence (and its strict key) reads like prose rather than code, a log or a drawing."""
    if _NO_PROSE.match(plain) or not _has_words(key) or _BOX.search(plain):
        return False
    letters = len(_NO_LETTER.sub("", key))
    return letters >= _MIN_LETTERS * (len(key) - key.count(" "))


def _has_words(key: str) -> bool:
    if not key.isascii() and sum(map(len, _CJK_RUN.findall(key))) >= _MIN_CJK_CHARS:
        return True
    return next(islice(_PLAIN_WORD.finditer(key), _MIN_WORDS - 1, None), None) is not None
