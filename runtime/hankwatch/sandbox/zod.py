"""Zod texts become JSON Schemas (spec sentinels 7): run against a recorder in ``zod.js``, never against Zod.

A text is one expression, or a module: lines that import Zod, single-line types, ``as const`` and annotations of
exported constants go, ``export default`` (or the one exported schema, or the one named ``schema``) is what it
means. As in Zod, objects let unknown keys pass unless they are strict, and ``default`` makes a field optional.
A field of ``any`` or ``unknown`` is required, as in Zod 4. Lengths of strings are counted in characters, where
Zod counts UTF-16 units; record keys of an enum may be absent. What has no counterpart in a JSON
Schema (code such as ``refine`` and ``transform``, ``lazy``, ``date``, flags of a regex) is a fault that names it.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hankwatch.core.errors import SchemaFault
from hankwatch.sandbox.javascript import ScriptFault, authored, call, explain
from hankwatch.sandbox.jslex import Unclosed, blanked

__all__ = ["explain", "json_schema"]

_RECORDER = Path(__file__).with_name("zod.js")
_IMPORT = re.compile(
    r"""(?<![^\n;])[ \t]*import\s[^;'"`()]*?\bfrom\s*(?P<quote>['"])(?P<module>\s*)(?P=quote)[ \t]*;?"""
)
_ZOD = re.compile(r"zod(/v[34])?")
_TYPE = re.compile(r"(?<![^\n;])[ \t]*(export\s+)?type\s+\w+\s*=(?:[^;\n{]|\{[^\n{}]*\})*;?(?=[ \t]*(?:\n|\Z))")
_FOREIGN = re.compile(
    r"(?<![^\n;])[ \t]*(?:export\s+)?(?:declare\s+)?(?P<word>type|interface|enum|namespace|class)\s+\w"
)
_AS_CONST = re.compile(r"\bas\s+const\b")
_DEFAULT = re.compile(r"(?<![^\n;])[ \t]*export\s+default\b")
_CONSTANT = re.compile(
    r"(?<![^\n;])[ \t]*(?P<export>export\s+)?(?P<how>const|let|var)\s+(?P<name>\w+)\s*(:[^=]+)?=(?!>)"
)
_STATEMENT = re.compile(r"\s*(const|let|var|function|exports)\b")


def json_schema(text: str) -> dict[str, Any]:
    """The JSON Schema that ``text`` stands for.

    Raises:
        SchemaFault: it does not parse, uses what is not supported, or exports no schema; with its line.
        ImportError: the extra with the JavaScript engine is not installed.
    """
    try:
        schema: Any = json.loads(call(_RECORDER.read_text(encoding="utf-8"), authored(_as_script(text))))
    except ScriptFault as fault:
        # What is missing at the end is noticed after it.
        line = None if fault.line is None else min(fault.line, text.count("\n") + 1)
        raise SchemaFault(fault.reason.removeprefix("TypeError: "), line) from None
    except ValueError:
        schema = None
    if not isinstance(schema, dict):  # a text that tampers with the engine may give anything
        raise SchemaFault("gives no Zod schema")
    return schema


def _as_script(text: str) -> str:
    """``text`` as statements that set ``exports``, line for line."""
    try:
        for pattern, rewrite in _REWRITES:
            text = _rewritten(text, pattern, rewrite)
        is_module = _STATEMENT.match(blanked(text)) is not None
    except Unclosed as error:
        raise SchemaFault(str(error), text.count("\n", 0, error.at) + 1) from None
    return text if is_module else f"exports.default = {text}"


def _rewritten(text: str, pattern: re.Pattern[str], rewrite: Callable[[re.Match[str], str], str]) -> str:
    """``text`` with each occurrence of ``pattern`` outside of literals and comments rewritten, on as many lines."""
    pieces: list[str] = []
    at = 0
    for found in pattern.finditer(blanked(text)):
        pieces += [text[at : found.start()], rewrite(found, text), "\n" * found[0].count("\n")]
        at = found.end()
    return "".join([*pieces, text[at:]])


def _import(found: re.Match[str], text: str) -> str:
    module = text[slice(*found.span("module"))]
    if not _ZOD.fullmatch(module):
        raise SchemaFault(f"an import of {module!r} is not supported", text.count("\n", 0, found.end()) + 1)
    return ""


def _foreign(found: re.Match[str], text: str) -> str:
    raise SchemaFault(f"{found['word']} is not supported in a schema text", text.count("\n", 0, found.end()) + 1)


def _constant(found: re.Match[str], _: str) -> str:
    exported = f" exports.{found['name']} =" if found["export"] else ""
    return f"{found['how']} {found['name']} ={exported}"


_REWRITES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]], ...] = (
    (_IMPORT, _import),
    (_TYPE, lambda *_: ""),
    (_FOREIGN, _foreign),
    (_AS_CONST, lambda *_: ""),
    (_DEFAULT, lambda *_: "exports.default ="),
    (_CONSTANT, _constant),
)
