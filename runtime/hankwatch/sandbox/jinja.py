"""Prompts in Jinja: an immutable sandbox over plain data (spec sentinels 6).

Runs in the worker, whose limits are the bound for time and memory; here is what a prompt may say and how
data prints. Nothing random is offered: the same journal must give the same prompts.
"""

import json
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from types import GeneratorType
from typing import Any

from jinja2 import StrictUndefined, TemplateRuntimeError, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox.limits import MAX_OUTPUT_BYTES

_TEMPLATE_FILE = "<template>"  # how Jinja names a source that came from no file, in tracebacks too
_OTHER_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


def check(source: str) -> None:
    """Compile ``source`` without running it.

    Raises:
        TemplateFault: it does not parse, names an unknown filter or test, or asks for another file.
    """
    _compile(source)


def render(source: str, context: Mapping[str, Any]) -> str:
    """``source`` rendered once over ``context``, seen as ``it`` and, member by member, as top-level names.

    Raises:
        TemplateFault: as ``check``.
        RenderFault: an undefined name, a refused access, an output over ``MAX_OUTPUT_BYTES``.
        Exception: whatever else the expressions of a template raise; see ``explain``.
    """
    template = _compile(source)
    pieces: list[str] = []
    size = 0
    for piece in template.generate({**context, "it": context}):
        size += len(piece)
        if size > MAX_OUTPUT_BYTES:
            break
        pieces.append(piece)
    text = "".join(pieces)
    if size > MAX_OUTPUT_BYTES or len(text.encode()) > MAX_OUTPUT_BYTES:
        raise RenderFault(f"the prompt is longer than {MAX_OUTPUT_BYTES // 1024**2} MiB")
    return text


def explain(error: Exception) -> tuple[str, int | None]:
    """What ``error`` of ``check`` or ``render`` says to an author, and the template line where one is known."""
    line = getattr(error, "line", None)
    frame = error.__traceback__
    while line is None and frame is not None:
        if frame.tb_frame.f_code.co_filename == _TEMPLATE_FILE:
            line = frame.tb_lineno
        frame = frame.tb_next
    if isinstance(error, (TemplateFault, RenderFault)):
        return error.reason, line
    if isinstance(error, RecursionError):
        return "is nested or recursive without end", line
    if isinstance(error, TemplateRuntimeError):  # undefined names and refused accesses say it all
        return str(error), line
    return f"{type(error).__name__}: {error}", line


class _Environment(ImmutableSandboxedEnvironment):
    """Data before methods: ``e.data.items`` is the field, and the method only where there is none."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def _compile(source: str) -> Any:
    try:
        tree = _ENVIRONMENT.parse(source)
        for node in tree.find_all(_OTHER_FILES):
            kind = "import" if isinstance(node, nodes.FromImport) else type(node).__name__.lower()
            raise TemplateFault(f"{kind} is not possible in a prompt: it has no other templates", node.lineno)
        return _ENVIRONMENT.from_string(tree)
    except TemplateSyntaxError as error:
        raise TemplateFault(error.message or "does not parse", error.lineno) from error
    except RecursionError as error:
        raise TemplateFault("is nested too deeply") from error


def _tojson(value: Any, indent: int | None = None) -> str:
    """Plain JSON: no HTML escaping, non-ASCII as it is, keys in their order."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # raises: undefined is not a value
    if isinstance(value, (GeneratorType, KeysView, ValuesView, ItemsView, range)):
        return list(value)
    raise RenderFault(f"a {type(value).__name__} is not data")


def _jsonl(values: Any) -> str:
    """One JSON value per line."""
    return "\n".join(_tojson(value) for value in values)


def _truncate_text(value: Any, limit: int) -> str:
    """At most ``limit`` characters, the last one an ellipsis where something was cut."""
    text = value if isinstance(value, str) else _tojson(value)
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"[:limit]


@pass_context  # never called while compiling then: Jinja would fold constant output, even unoptimized
def _finalize(_: Context, value: Any) -> Any:
    if isinstance(value, (dict, list, tuple, GeneratorType, KeysView, ValuesView, ItemsView)):
        return _tojson(value)
    if callable(value) and not isinstance(value, Undefined):
        raise RenderFault(f"{getattr(value, '__name__', 'this')} is a method, not a value")
    return value


def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined,
        autoescape=False,
        optimized=False,  # nor fold other constants: `{% set x = 'a' * 10**9 %}` in a mere check
        keep_trailing_newline=True,  # a text without tags is sent as it is
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    filters: dict[str, Callable[..., Any]] = {"tojson": _tojson, "jsonl": _jsonl, "truncate_text": _truncate_text}
    environment.filters.update(filters)
    del environment.filters["random"]
    del environment.globals["lipsum"]
    return environment


_ENVIRONMENT = _environment()
