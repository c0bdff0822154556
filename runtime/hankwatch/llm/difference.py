"""A request as text that people read and compare, and what changed between two of them."""

import difflib
from collections.abc import Iterator
from typing import Final

import orjson

from hankwatch.core.text import clean_json, strip_controls
from hankwatch.llm.client import ModelRequest

_WIDTH_CHARS: Final = 160
"""Longer lines are continued on the next, so that a change inside one shows as that part of it."""
_SHOWN_LINES: Final = 60
_COMPARED_LINES: Final = 5_000
"""Of each request, from its first difference on; keeps the comparison quick."""
_CONTEXT_LINES: Final = 3


def request_text(request: ModelRequest) -> str:
    """Everything that decides the reply, one thing a line."""
    return "\n".join(_lines(request)) + "\n"


def difference(recorded: ModelRequest, asked: ModelRequest) -> str:
    """A diff from ``recorded`` to ``asked``, at most 60 lines of it; empty when they read alike."""
    before, after = list(_lines(recorded)), list(_lines(asked))
    same = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    start = max(0, (min(len(before), len(after)) if same is None else same) - _CONTEXT_LINES)
    end = start + _COMPARED_LINES
    diff = list(difflib.unified_diff(before[start:end], after[start:end], "recorded", "asked", lineterm=""))
    # Line numbers would be those of this text, which nobody has.
    diff = ["…" if line.startswith("@@") else line for line in diff]
    if len(diff) > _SHOWN_LINES:
        diff[_SHOWN_LINES:] = [f"… {len(diff) - _SHOWN_LINES} more lines"]
    return "\n".join(diff)


def _lines(request: ModelRequest) -> Iterator[str]:
    yield f"model: {request.model}"
    yield f"temperature: {float(request.temperature):g}"
    yield f"maxOutputTokens: {request.max_output_tokens}"
    for name, value in (("schemaName", request.schema_name), ("schemaDescription", request.schema_description)):
        if value is not None:
            yield from _wrapped(f"{name}: {value}")
    if request.json_schema is not None:
        schema, _ = clean_json(dict(request.json_schema))
        yield "jsonSchema:"
        yield from _wrapped(orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode())
    for message in request.messages:
        yield f"--- {message.role}"
        yield from _wrapped(message.content)


def _wrapped(text: str) -> Iterator[str]:
    for line in strip_controls(text).split("\n"):
        for start in range(0, max(1, len(line)), _WIDTH_CHARS):
            yield line[start : start + _WIDTH_CHARS]
