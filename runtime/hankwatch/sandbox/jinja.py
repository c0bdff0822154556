"""Prompts in Jinja: an immutable sandbox over plain data (spec sentinels 6).

Runs in the worker, whose limits are the bound for time and memory; here is what a prompt may say and how
data prints. Nothing random is offered: the same journal must give the same prompts.
"""

import json
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from functools import wraps
from types import GeneratorType
from typing import Any

from jinja2 import (
    Environment,
    StrictUndefined,
    TemplateRuntimeError,
    TemplateSyntaxError,
    Undefined,
    nodes,
    pass_context,
    pass_environment,
)
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox.limits import MAX_OUTPUT_BYTES

_TEMPLATE_FILE = "<template>"  # how Jinja names a source that came from no file, in tracebacks too
_LISTS = (list, tuple, GeneratorType, KeysView, ValuesView, ItemsView)
_PRINTED = "as it prints"
"""A filter that no template can name."""
_OF_TEXT = (
    *("capitalize", "center", "e", "escape", "forceescape", "format", "indent", "lower", "replace", "safe", "string"),
    *("striptags", "title", "trim", "truncate", "upper", "urlencode", "urlize", "wordcount", "wordwrap"),
)
"""Filters that make a text of what they are given."""
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
    """Data before methods: ``e.data.items`` is the field, and the method only where there is none.

    Where a text is made of lists and objects, they are in it as they print: as JSON.
    """

    intercepted_binops = frozenset({"%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, str):
            right = tuple(map(_printed, right)) if isinstance(right, tuple) else _printed(right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        formatting = super().wrap_str_format(value)
        return None if formatting is None else _over(_printed, formatting)


class _List(list[Any]):
    def __str__(self) -> str:
        return _tojson(self)

    __repr__ = __str__


class _Object(dict[Any, Any]):
    def __str__(self) -> str:
        return _tojson(self)

    __repr__ = __str__


def _printed(value: Any) -> Any:
    """``value``, whose text is JSON where it is a list or an object; so is that of its members."""
    if isinstance(value, dict):
        return _Object({key: _printed(item) for key, item in value.items()})
    return _List(map(_printed, value)) if isinstance(value, _LISTS) else value


def _text(value: Any) -> Any:
    """``value``, or its text where it is a list or an object."""
    return str(_printed(value)) if isinstance(value, (dict, *_LISTS)) else value


def _over(change: Callable[[Any], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """``original`` over changed arguments."""

    @wraps(original)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return original(*map(change, args), **{name: change(value) for name, value in kwargs.items()})

    return changed


@pass_environment
def _join(environment: Environment, values: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    """Jinja's ``join``, of values as they print."""
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    return str(_text(d)).join(str(_text(value)) for value in values)


def _compile(source: str) -> Any:
    try:
        tree = _ENVIRONMENT.parse(source)
        for node in tree.find_all(_OTHER_FILES):
            kind = "import" if isinstance(node, nodes.FromImport) else type(node).__name__.lower()
            raise TemplateFault(f"{kind} is not possible in a prompt: it has no other templates", node.lineno)
        for sum_of_texts in tree.find_all(nodes.Concat):
            sum_of_texts.nodes = [
                nodes.Filter(part, _PRINTED, [], [], None, None, lineno=part.lineno) for part in sum_of_texts.nodes
            ]
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


def _pprint(value: Any) -> str:
    return _tojson(value, indent=2)


def _jsonl(values: Any) -> str:
    """One JSON value per line."""
    return "\n".join(_tojson(value) for value in values)


def _truncate_text(value: Any, limit: int) -> str:
    """At most ``limit`` characters, the last one an ellipsis where something was cut."""
    text = value if isinstance(value, str) else _tojson(value)
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"[:limit]


@pass_context  # never called while compiling then: Jinja would fold constant output, even unoptimized
def _finalize(_: Context, value: Any) -> Any:
    if isinstance(value, (dict, *_LISTS)):
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
    filters |= {"join": _join, "pprint": _pprint, _PRINTED: _text}
    filters |= {name: _over(_text, environment.filters[name]) for name in _OF_TEXT}
    filters["xmlattr"] = _over(_printed, environment.filters["xmlattr"])
    environment.filters.update(filters)
    del environment.filters["random"]
    del environment.globals["lipsum"]
    return environment


_ENVIRONMENT = _environment()
