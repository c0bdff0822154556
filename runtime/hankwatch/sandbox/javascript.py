"""JavaScript without a world: one function called once in a fresh quickjs, JSON in and text out.

Runs in the worker, whose limits are the bound for time and memory. The engine has no I/O, no timers, no modules.
"""

import json
import re
from typing import Any

from hankwatch.core.errors import RenderFault, SchemaFault, TemplateFault

_MEMORY_BYTES = 256 * 1024 * 1024  # half of the worker's: Python holds the job and its result beside it
_STACK_BYTES = 1024 * 1024
# The engine names every source alike; blank lines before the author's make its line numbers tell.
_LINES_BEFORE = 10_000
_FUNCTION_HEAD_LINES = 2  # that `new Function` writes before a body
_FRAME_LINE = re.compile(r"<input>:(\d+)")


class ScriptFault(Exception):
    """JavaScript that does not parse or that threw."""

    def __init__(self, reason: str, line: int | None) -> None:
        self.reason = reason
        self.line = line
        """1-based line of the ``authored`` text, None when the fault has no place in it."""
        super().__init__(reason)


def authored(body: str) -> str:
    """``body`` for ``new Function``, placed so that faults in it are told with their lines."""
    return "\n" * (_LINES_BEFORE - _FUNCTION_HEAD_LINES) + body


def call(function: str, *arguments: Any) -> str:
    """The text that ``function`` gives for ``arguments``: the source of one that takes JSON texts.

    A text is cut at its first NUL, and must not be one that was concatenated last (the engine cannot hand that out).

    Raises:
        ScriptFault: it threw, or went over the engine's memory or stack.
        ImportError: no engine is installed.
    """
    import quickjs

    context = quickjs.Context()
    context.set_memory_limit(_MEMORY_BYTES)
    context.set_max_stack_size(_STACK_BYTES)
    try:
        text: str = context.eval(function)(*(json.dumps(argument, ensure_ascii=False) for argument in arguments))
    except quickjs.JSException as error:
        raise _fault(str(error)) from None
    return text


def explain(error: Exception) -> tuple[str, int | None]:
    """What a failure of an engine on top of ``call`` says to an author, and the line where one is known."""
    if isinstance(error, (TemplateFault, RenderFault, SchemaFault)):
        return error.reason, error.line
    if isinstance(error, ImportError):
        return "needs a JavaScript engine: pip install 'hankwatch[eta]'", None
    if isinstance(error, RecursionError):
        return "is nested too deeply", None
    return f"{type(error).__name__}: {error}", None


def _fault(told: str) -> ScriptFault:
    message, _, frames = told.partition("\n    at ")
    message = message.removesuffix("\nundefined").strip()  # the stack of what is no Error
    if not message or message.startswith("(Failed obtaining"):  # its own conversion to text threw
        message = "JavaScript threw something without a text"
    elif message == "null":  # what the engine throws when there is no room left for an Error
        message = "JavaScript threw null, or is out of memory"
    lines = [int(number) - _LINES_BEFORE for number in _FRAME_LINE.findall(frames)]
    return ScriptFault(message, next((line for line in lines if line > 0), None))
