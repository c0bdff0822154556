"""How many tokens a text has, without asking a tokenizer: an upper bound in practice (spec sentinels 6).

Each model has its own tokenizer, most are not published, and none is cheap, so characters are counted by class, and
where classes meet: tokens seldom reach over such a place. The weights are fitted to the most that any of cl100k,
o200k, DeepSeek's and an early Claude's tokenizer makes of a text. Estimate divided by that most, as measured:

========================================================  ============
agents' streams and journals                              1.5 … 3.0
other JSON, paths, URLs, CSV                              1.1 … 2.0
prose, Markdown, source text, diffs                       1.2 … 1.7
UUIDs, hashes, base64, random letters and digits          1.1 … 2.0
numbers, dates, addresses                                 1.0 … 2.4
other scripts, emoji, box drawing                         1.0 … 3.6
identifiers in camel case                                 2.6
runs of one character                                     3 … 12
========================================================  ============

Too few only for what is hardly a prompt: characters drawn at random from all of Unicode (0.76) or from all of Han
(0.85), and CRLFs without text between them (0.36, of DeepSeek's alone).
"""

from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hankwatch.llm.client import Message

TOKENS_PER_MESSAGE = 4
"""What a message costs beside its text."""
LEAST_FOR_A_CHARACTER = 0.1
"""No character is estimated at less: a text so long is too long without counting."""

_UNIT = 0.02
_BYTE_WEIGHTS = {"a": 0.18, "A": 0.24, "0": 1.0, " ": LEAST_FOR_A_CHARACTER, "n": 0.36, "p": 0.4}
_SCRIPT_WEIGHTS = ((0xC0, 0.0), (0xE0, 1.5), (0xE1, 1.96), (0xE3, 3.3), (0xF0, 2.0), (0x100, 3.2))
"""Of a character beyond ASCII the first byte tells the script: up to which one, what it counts; the others nothing."""
_PAIR_WEIGHTS = {
    # A word begins.
    b" a": 0.8,
    b"pa": 0.8,
    b"na": 0.8,
    b"0a": 1.0,
    # A number begins.
    **dict.fromkeys((b" 0", b"p0", b"n0", b"a0"), 1.0),
    # Punctuation, lines and white space meet.
    b"pp": 0.75,
    b"p ": 0.65,
    b"np": 1.0,
    b"n ": 0.45,
    b" n": 0.45,
}
_CASE_WEIGHTS = {b"aA": 0.55}
_CLUSTER_WEIGHTS = {b"ccc": 1.5, b"cccc": 1.0}
"""Words of a language have few of them; what was drawn at random has many, and gets a token for two letters."""
_CONSONANTS = b"bcdfghjklmnpqrstvwxz"
_PIECE_BYTES = 64 * 1024
"""Counted at once: other threads have their turn after it."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few; takes 0.1 s for each MB."""
    data = text.encode("utf-8", "replace")
    return ceil(sum(_weigh(data[at : at + _PIECE_BYTES]) for at in range(0, len(data), _PIECE_BYTES)))


def request_tokens(messages: "Iterable[Message]") -> int:
    """Tokens of messages as they are sent."""
    return sum(estimate_tokens(message.content) + TOKENS_PER_MESSAGE for message in messages)


def _weigh(data: bytes) -> float:
    return _UNIT * sum(data.translate(_WEIGHTS)) + sum(
        weight * seen.count(pattern)
        for table, weights in ((_KINDS, _PAIR_WEIGHTS), (_CASES, _CASE_WEIGHTS), (_CLUSTERS, _CLUSTER_WEIGHTS))
        for seen in (data.translate(table),)
        for pattern, weight in weights.items()
    )


def _case(byte: int) -> str:
    """The class of a byte of UTF-8: ``a A 0``, space, ``n`` other white space and controls, ``p``; else ``.``."""
    char = chr(byte)
    if byte >= 0x80:
        return "."
    if char.isalnum():
        return "0" if char.isdigit() else "a" if char.islower() else "A"
    return " " if char == " " else "p" if char.isprintable() else "n"


def _weight(byte: int) -> float:
    if byte < 0x80:
        return _BYTE_WEIGHTS[_case(byte)]
    return next(weight for end, weight in _SCRIPT_WEIGHTS if byte < end)


_CASES = bytes(ord(_case(byte)) for byte in range(256))
_KINDS = _CASES.replace(b"A", b"a")
_CLUSTERS = bytes(ord("c") if bytes([byte]).lower() in _CONSONANTS else ord(".") for byte in range(256))
_WEIGHTS = bytes(round(_weight(byte) / _UNIT) for byte in range(256))
