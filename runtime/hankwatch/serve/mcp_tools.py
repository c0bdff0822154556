"""A tool: what a model reads of it, how its arguments are read, and what it answers (Model Context Protocol)."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import orjson
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from mcp_types import Tool as Listed
from pydantic import ConfigDict

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, validate
from hankwatch.core.contain import contain
from hankwatch.core.errors import (
    ArgumentsInvalid,
    HankwatchError,
    InfrastructureError,
    RunNotFound,
    WatchInvalid,
    WatchNotFound,
)
from hankwatch.core.limits import within
from hankwatch.core.text import clean_json, shorten, strip_controls
from hankwatch.serve.mcp_asker import Asker
from hankwatch.serve.mcp_schema import Schema
from hankwatch.serve.policy import Scope

_LOG = logging.getLogger(__name__)
LIMIT_S: Final = 60.0
"""Longest that a call may take."""
MAX_RESULT_BYTES: Final = 64 * 1024
MAX_TEXT_CHARS: Final = 2_000
"""Of one string in a result, where the tool says nothing else."""
_MAX_FAULTS: Final = 20
_MAX_FAULT_CHARS: Final = 500

Result = dict[str, Any]
A = TypeVar("A", bound="Arguments")


class Arguments(ConfigModel):
    """Of one tool; keys are snake_case."""

    model_config = ConfigDict(alias_generator=None)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    title: str
    description: str
    """Tells a model when to use it and what comes back."""
    schema: Callable[[Asker], Schema]
    """Of the arguments; an agent's turn says some of them itself."""
    call: Callable[[Asker, Mapping[str, Any]], Awaitable[Result]]
    scope: Scope
    read_only: bool = True
    destructive: bool = False
    """It ends something that stands."""

    def listed(self, asker: Asker) -> Listed:
        """As clients list it."""
        hints = ToolAnnotations(
            read_only_hint=self.read_only,
            destructive_hint=self.destructive,
            idempotent_hint=True,
            open_world_hint=False,
        )
        return Listed(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.schema(asker),
            annotations=hints,
        )

    async def answer(self, asker: Asker, written: Mapping[str, Any]) -> CallToolResult:
        """What it comes to; a failure is an answer too, and raises nothing but cancellation."""
        failures = list[Exception]()
        result: CallToolResult | None = None
        try:
            with contain(failures.append):
                asker.caller.require(self.scope)
                call = partial(self.call, asker, _clean(written))
                result = _result(await within(asker.clock, LIMIT_S, call))
        except InfrastructureError as error:
            failures.append(error)
        return result or failure(failures[0])


def read_arguments(model: type[A], written: Mapping[str, Any]) -> A:
    """Arguments as a client wrote them.

    Raises:
        ArgumentsInvalid: they are none; every fault is named.
    """
    diagnostics = Diagnostics()
    made = validate(model, Document.from_value(dict(written), "arguments"), diagnostics)
    if made is None:
        raise ArgumentsInvalid(
            [
                f"{fault.pointer.removeprefix('/') or 'arguments'}: {fault.message}"
                + (f" ({fault.hint})" if fault.hint else "")
                for fault in diagnostics.errors
            ]
        )
    return made


def _clean(written: Mapping[str, Any]) -> Mapping[str, Any]:
    clean, cleaned = clean_json(written)
    if cleaned.non_finite:  # as null it would mean something else
        raise ArgumentsInvalid(["a number is not finite"])
    return clean if isinstance(clean, dict) else {}


def harmless(value: Any, max_chars: int = MAX_TEXT_CHARS) -> Any:
    """A JSON value whose strings are short and hold no control characters."""
    match value:
        case str():
            text = strip_controls(value)
            return text if len(text) <= max_chars else shorten(text, max_chars, f"… [{len(text):,} characters in all]")
        case Mapping():
            return {harmless(key, max_chars): harmless(item, max_chars) for key, item in value.items()}
        case list() | tuple():
            return [harmless(item, max_chars) for item in value]
    return value


def failure(error: Exception) -> CallToolResult:
    """A failure as a model reads it: a stable code, what is wrong, and what to do about it."""
    if isinstance(error, TimeoutError):
        return refused("timeout", f"this took longer than {LIMIT_S:g} s", "ask for less, or try again")
    if not isinstance(error, HankwatchError):
        _LOG.error("a tool failed", exc_info=error)
        return refused("internal", f"{type(error).__name__}: this is a defect of hankwatch; its log says where")
    if isinstance(error, InfrastructureError):
        _LOG.warning("a tool failed: %s", error)
        return refused(error.code, "something this server stands on failed; its log says what", "try again later")
    faults = list(error.faults) if isinstance(error, WatchInvalid | ArgumentsInvalid) else []
    match error:
        case RunNotFound():
            return refused(error.code, f"there is no run {error.name!r}", "list_runs names them")
        case WatchNotFound():
            return refused(error.code, str(error), "list_watches names those you may use")
        case _:
            return refused(error.code, str(error), error.hint, faults)


def refused(code: str, message: str, hint: str | None = None, faults: list[str] | None = None) -> CallToolResult:
    """An error of a tool."""
    error: Result = {"code": code, "message": harmless(message)}
    if hint is not None:
        error["hint"] = hint
    if faults:
        error["faults"] = harmless(faults[:_MAX_FAULTS], _MAX_FAULT_CHARS)
    return _answer({"error": error}, is_error=True)


def _result(value: Result) -> CallToolResult:
    answer = _answer(value)
    size_bytes = sum(len(block.text.encode()) for block in answer.content if isinstance(block, TextContent))
    if size_bytes > MAX_RESULT_BYTES:
        told = f"the answer has {size_bytes:,} bytes, and at most {MAX_RESULT_BYTES:,} are sent"
        return refused("result-too-large", told, "ask for less: a lower limit, or one thing by its name")
    return answer


def _answer(value: Result, *, is_error: bool = False) -> CallToolResult:
    """The value as data, and as text for clients that only read that."""
    written = orjson.dumps(value)
    return CallToolResult(
        content=[TextContent(type="text", text=written.decode())],
        structured_content=orjson.loads(written),
        is_error=is_error,
    )
