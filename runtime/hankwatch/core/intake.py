"""JSON from outside, read exactly and without a crash whatever it holds (spec events, intake).

orjson is fast and strict: it refuses what careless programs print (surrogate escapes, NaN, broken UTF-8)
and rounds long integers silently. So lines that it refuses, or that may hold such an integer, are read by
``json`` instead, after everything that would make it recurse too deep has been cut from the text.
"""

import json
import re
from typing import Any

import orjson

from hankwatch.core.errors import BadLine
from hankwatch.core.text import CUT_MARK, MAX_DEPTH, Cleaned, clean_json

_NOTHING = Cleaned()
_CONTAINERS = (dict, list)
_LONG_RUN = b"0" * 19
"""Fewer digits are no integer beyond 64 bit."""
_ALL_DIGITS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONGEST_EXACT = 21
"""Characters of -2**64; what is longer is beyond 64 bit, and may be longer than ``int`` converts."""
_STRING_OR_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|(?P<open>[\[{]+)|(?P<close>[\]}]+)', re.DOTALL)


def parse_json(line: bytes, *, max_depth: int = MAX_DEPTH + 1) -> tuple[Any, Cleaned]:
    """A line as clean JSON, and what cleaning it took; raises ``BadLine`` when no parser takes it.

    ``max_depth`` counts containers inside containers, the outermost one included.
    """
    if not line:
        raise BadLine("empty line")
    if _LONG_RUN in line.translate(_ALL_DIGITS_ZERO):
        return _parse_exactly(line, max_depth)
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_exactly(line, max_depth)
    if line.count(b"[") + line.count(b"{") > max_depth:
        return cut_deep(value, max_depth=max_depth)
    return value, _NOTHING


def cut_deep(value: Any, *, max_depth: int) -> tuple[Any, Cleaned]:
    """A clean value without the containers below ``max_depth``; the same object when there are none."""
    # Level by level, which is quick, since hardly any value is that deep.
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(max_depth):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, _CONTAINERS)
        ]
        if not level:
            return value, _NOTHING
    return clean_json(value, max_depth=max_depth)


def _parse_exactly(line: bytes, max_depth: int) -> tuple[Any, Cleaned]:
    text = line.decode("utf-8", "replace")
    broken = text.count("\ufffd") > line.count(b"\xef\xbf\xbd")
    text, cut = _cut_text(text, max_depth)
    huge = 0

    def parse_int(digits: str) -> int | str:
        nonlocal huge
        if len(digits) <= _LONGEST_EXACT:
            return int(digits)
        huge += 1
        return digits

    try:
        value, cleaned = clean_json(json.loads(text, parse_int=parse_int), max_depth=max_depth)
    except ValueError as error:
        raise BadLine(f"not JSON: {error}") from None
    return value, Cleaned(
        cleaned.surrogates + broken, cleaned.non_finite, cleaned.big_ints + huge, cleaned.cut_depth + cut
    )


def _cut_text(text: str, max_depth: int) -> tuple[str, int]:
    """JSON text with every container below ``max_depth`` replaced by a mark, and how many there were."""
    if text.count("[") + text.count("{") <= max_depth:
        return text, 0
    pieces: list[str] = []
    depth = cuts = kept_to = 0
    for token in _STRING_OR_BRACKETS.finditer(text):
        length = token.end() - token.start()
        if token["open"]:
            if depth <= max_depth < depth + length:
                pieces += (text[kept_to : token.start() + max_depth - depth], f'"{CUT_MARK}"')
                cuts += 1
            depth += length
        elif token["close"]:
            if depth - length <= max_depth < depth:
                kept_to = token.start() + depth - max_depth
            depth -= length
    if depth > max_depth:
        raise BadLine("not JSON: ends inside its containers")
    return "".join((*pieces, text[kept_to:])), cuts
