r"""Prompts in Eta: tags with JavaScript inside (spec sentinels 6).

The tag language, as the engine's documentation and its output have it: ``<% code %>``, ``<%= value %>`` and
``<%~ value %>`` (alike here: a prompt is not HTML); ``-`` inside either end of a tag removes the one newline
beside it, ``_`` all white space beside it, and where neither stands one newline after the tag goes. Newlines
come out as ``\n``. There are no other templates, so no ``include`` and no ``layout``.

Data is what JSON.parse makes of it, with one exception: integers that a Number cannot hold are BigInts, which
print all their digits (in ``JSON.stringify`` too) and refuse to be mixed with Numbers. "Now" is the trigger's
instant and nothing is random: the same journal must give the same prompts. The language comes without a host:
no ``console``, ``URL`` or ``Intl`` (``toLocaleString`` knows no locale).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any

from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox.javascript import ScriptFault, authored, call, explain
from hankwatch.sandbox.jslex import Unclosed, end_of_literal
from hankwatch.sandbox.limits import MAX_OUTPUT_BYTES

__all__ = ["check", "explain", "render"]

_OPEN = re.compile(r"<%([-_]?)\s*([=~]?)")
_CLOSE_OR_LITERAL = re.compile(r"([-_]?)%>|['\"`]|/\*")
_NEWLINE = re.compile(r"\r\n?")
_SPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript trims."""

_CHECK = "(body) => { new Function('it', JSON.parse(body)); return '' }"
_RENDER = """(body, context, exactly) => {
  const { parse, stringify, rawJSON } = JSON;
  const method = (named) => Function.prototype.call.bind(named);  // as it is now, whatever the prompt replaces
  const join = method(Array.prototype.join);
  const includes = method(String.prototype.includes);
  const toWellFormed = method(String.prototype.toWellFormed);
  const exact = (key, value, { source }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?[0-9]+$/.test(source) ? BigInt(source) : value;
  BigInt.prototype.toJSON = function () { return rawJSON(String(this)) };
  const it = parse(context, parse(exactly) ? exact : undefined);
  delete Math.random;
  const now = it.world ? it.world.currentTime : 0;
  Date = new Proxy(Date, {
    construct: (target, given, self) => Reflect.construct(target, given.length ? given : [now], self),
    apply: (target) => String(new target(now)),
    get: (target, name) => name === 'now' ? () => +new target(now) : target[name],
  });
  const given = new Function('it', parse(body))(it);
  if (typeof given !== 'string') return '';
  const text = toWellFormed(given);
  return includes(text, '\\0') ? stringify(text) : join(['=', text], '');
}"""
_MAX_SAFE_INTEGER = 2**53 - 1


def check(source: str) -> None:
    """Compile ``source`` without running it.

    Raises:
        TemplateFault: a tag, string or comment is not closed, or the code does not parse.
        ImportError: the extra with the JavaScript engine is not installed.
    """
    program = _compile(source)
    try:
        call(_CHECK, program.body())
    except ScriptFault as fault:
        raise TemplateFault(fault.reason, program.template_line(fault)) from None


def render(source: str, context: Mapping[str, Any]) -> str:
    """``source`` rendered once over ``context``, seen as ``it``; a lone surrogate comes out as U+FFFD.

    Raises:
        TemplateFault: as ``check``, where a tag, string or comment is not closed.
        RenderFault: whatever the code throws, no text, or one over ``MAX_OUTPUT_BYTES``.
        ImportError: as ``check``.
    """
    program = _compile(source)
    try:
        given = call(_RENDER, program.body(), context, _has_long_integer(context))
    except ScriptFault as fault:
        raise RenderFault(fault.reason, program.template_line(fault)) from None
    if not given:
        raise RenderFault("the prompt returned before its end, without a text")
    try:
        text: str = given[1:] if given[0] == "=" else loads(given)
    except ValueError:
        raise RenderFault("the prompt changed JavaScript itself, so that its text cannot be read") from None
    if len(text.encode()) > MAX_OUTPUT_BYTES:
        raise RenderFault(f"the prompt is longer than {MAX_OUTPUT_BYTES // 1024**2} MiB")
    return text


def _has_long_integer(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_has_long_integer, value.values()))
        case list():
            return any(map(_has_long_integer, value))
    return isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER


@dataclass(slots=True)
class _Program:
    """JavaScript under construction, and for each of its lines the template line it came from."""

    code: list[str] = field(default_factory=lambda: ['const __eta = { res: "" };'])
    lines: list[int] = field(default_factory=lambda: [1])

    def add(self, code: str, line: int) -> None:
        for number, piece in enumerate(code.split("\n")):
            self.code.append(piece)
            self.lines.append(line + number)

    def add_text(self, text: str, line: int) -> None:
        if text:
            self.add(f"__eta.res+={dumps(text)};", line)

    def body(self) -> str:
        return authored("\n".join(self.code))

    def template_line(self, fault: ScriptFault) -> int | None:
        """The end of the code, where a missing bracket is noticed, is the end of the template."""
        return None if fault.line is None else self.lines[min(fault.line, len(self.lines)) - 1]


def _compile(source: str) -> _Program:
    source = _NEWLINE.sub("\n", source)
    program = _Program()
    at, line = 0, 1
    trim_left = ""
    while opening := _OPEN.search(source, at):
        mark, kind = opening.groups()
        program.add_text(_trimmed(source[at : opening.start()], trim_left, mark), line)
        line += source.count("\n", at, opening.end())
        closing = _closing(source, opening)
        code = source[opening.end() : closing.start()].rstrip(_SPACE)
        program.add(f"__eta.res+={code}" if kind else code, line)
        line += source.count("\n", opening.end(), closing.end())
        if kind:
            program.add(";", line)  # on a line of its own: a line comment would eat it
        at, trim_left = closing.end(), closing[1] or "nl"
    program.add_text(_trimmed(source[at:], trim_left, ""), line)
    program.add("return __eta.res;", line + source.count("\n", at))
    return program


def _closing(source: str, opening: re.Match[str]) -> re.Match[str]:
    at = opening.end()
    try:
        while found := _CLOSE_OR_LITERAL.search(source, at):
            if found[1] is not None:
                return found
            at = end_of_literal(source, found.start())
    except Unclosed as error:
        raise TemplateFault(str(error), source.count("\n", 0, error.at) + 1) from None
    raise TemplateFault("unclosed tag", source.count("\n", 0, opening.start()) + 1)


def _trimmed(text: str, left: str, right: str) -> str:
    """``text`` less what the tag before it (``left``: a mark, ``nl`` or nothing) and after it take."""
    if left == "_":
        text = text.lstrip(_SPACE)
    elif left:
        text = text.removeprefix("\n")
    if right == "_":
        return text.rstrip(_SPACE)
    return text.removesuffix("\n") if right else text
