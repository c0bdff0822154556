"""Structured answers: one parser for every provider, and one attempt at repair (spec sentinels 7, bugs A14)."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from hankwatch.core.text import clean_json, shorten, strip_controls
from hankwatch.llm.client import Message, ModelReply, ModelRequest
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.schema import AnswerSchema

_QUOTED_CHARS = 200
_SHOWN_ERRORS = 5
_OPENING = re.compile(r"`{3,}|~{3,}")
_LANGUAGE = re.compile(r"[\w+.-]*")

Ask = Callable[[ModelRequest], Awaitable[ModelReply]]


class AnswerInvalid(Exception):
    """A structured answer that does not fit its schema, also after its repair; becomes its trigger's failure."""

    def __init__(self, errors: tuple[str, ...], reply: str) -> None:
        self.errors = errors
        start = json.dumps(shorten(strip_controls(reply), _QUOTED_CHARS), ensure_ascii=False)
        super().__init__(
            f"the answer is still not valid after one attempt at repair: {_listed(errors)}; it begins {start}"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a sentinel was answered, all calls for it together."""

    content: str | dict[str, Any] | list[Any]
    """Text, or the valid value of a structured answer."""
    cost_usd: float | None
    """None when the cost of any call is unknown."""
    input_tokens: int | None
    output_tokens: int | None
    """Both None when the tokens of any call are unknown."""
    truncated: bool
    """The model stopped at its output limit."""
    call_id: str | None
    """Of the call whose reply this is."""


async def answered(ask: Ask, request: ModelRequest, schema: AnswerSchema | None, sandbox: Sandbox) -> Answer:
    """The answer to ``request``, valid where there is a schema; an invalid one is asked for once more.

    Raises:
        ModelCallFailed: a call failed.
        AnswerInvalid: the second answer was not valid either.
        SchemaFault: the schema cannot be used after all.
    """
    reply = await ask(request)
    if schema is None:
        return _answer(reply.text, reply)
    value, errors = await read_answer(reply.text, schema, sandbox)
    if not errors:
        return _answer(value, reply)
    again = replace(
        request,
        messages=(*request.messages, Message("assistant", reply.text), Message("user", _correction(errors, reply))),
        labels={**request.labels, "repair": 1},
    )
    repaired = await ask(again)
    value, errors = await read_answer(repaired.text, schema, sandbox)
    if errors:
        raise AnswerInvalid(errors, repaired.text)
    return _answer(value, reply, repaired)


async def read_answer(text: str, schema: AnswerSchema, sandbox: Sandbox) -> tuple[Any, tuple[str, ...]]:
    """The value that a reply means, and what is wrong with it; no errors means it is valid.

    Raises:
        SchemaFault: the schema cannot be used.
    """
    bare = unfenced(text)
    if bare in schema.choices:
        return bare, ()
    try:
        value = schema.unwrap(parse(bare))
    except ValueError as error:
        return None, (f"it is not JSON: {error}",)
    if schema.output == "object" and not isinstance(value, dict):
        return value, ("it is not a JSON object",)
    return value, tuple(await sandbox.validate(schema.value, value))


def parse(text: str) -> Any:
    """The JSON value of a model's text: line breaks inside strings are taken, what no JSON reader takes is not.

    Text that is no valid Unicode and integers beyond 64 bit come out as the journal can hold them.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        value, cleaned = clean_json(json.loads(text, strict=False, parse_constant=_no_constant))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if cleaned.cut_depth:
        raise ValueError("nested too deep")
    return value


def unfenced(text: str) -> str:
    """``text`` without a code fence around the whole of it."""
    text = text.strip("\ufeff \t\r\n")
    opening = _OPENING.match(text)
    if opening is None or len(text) < 2 * len(opening[0]) or not text.endswith(opening[0]):
        return text
    inner = text[len(opening[0]) : -len(opening[0])]
    first, newline, rest = inner.partition("\n")
    if newline and _LANGUAGE.fullmatch(first.strip()):
        return rest.strip()
    return inner.strip().removeprefix("json").strip()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _correction(errors: tuple[str, ...], reply: ModelReply) -> str:
    cut = " It was cut off at the limit of its length: be shorter." if reply.truncated else ""
    listed = "\n".join(f"- {error}" for error in errors)
    return (
        f"That answer cannot be used.{cut} What is wrong with it:\n{listed}\n\n"
        "Answer again, with the corrected JSON alone: no text around it, no code fence."
    )


def _listed(errors: tuple[str, ...]) -> str:
    more = f" and {len(errors) - _SHOWN_ERRORS} more" if len(errors) > _SHOWN_ERRORS else ""
    return "; ".join(shorten(error, _QUOTED_CHARS) for error in errors[:_SHOWN_ERRORS]) + more


def _answer(content: Any, *replies: ModelReply) -> Answer:
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    return Answer(
        content,
        cost_usd=sum(costs) if len(costs) == len(replies) else None,
        input_tokens=_sum(reply.input_tokens for reply in replies),
        output_tokens=_sum(reply.output_tokens for reply in replies),
        truncated=replies[-1].truncated,
        call_id=replies[-1].call_id,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
