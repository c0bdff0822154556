"""Just enough of JavaScript's spelling to step over what may hold any character: strings, templates, comments."""

import re

_SIMPLE = re.compile(
    r"""
      ' (?: \\ (?: \r\n | . ) | [^'\\\n\r] )* '
    | " (?: \\ (?: \r\n | . ) | [^"\\\n\r] )* "
    | /\* .*? \*/
    """,
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE_TEXT = re.compile(r"(?:\\.|\$(?!\{)|[^\\`$])*", re.DOTALL)
_INSIDE_BRACES = re.compile(r"[^'\"`/{}]*")


class Unclosed(Exception):
    """Something that begins and never ends."""

    def __init__(self, kind: str, at: int) -> None:
        self.kind = kind
        self.at = at
        """Offset where it begins."""
        super().__init__(f"unclosed {kind}")


def end_of_literal(source: str, at: int) -> int:
    """Where the string, template literal or block comment that begins at ``at`` ends (the offset after it).

    Raises ``Unclosed``; template literals inside template literals recurse.
    """
    if source[at] == "`":
        return _end_of_template(source, at)
    found = _SIMPLE.match(source, at)
    if found is None:
        raise Unclosed("comment" if source[at] == "/" else "string", at)
    return found.end()


def _end_of_template(source: str, start: int) -> int:
    at = start + 1
    while True:
        at = _TEMPLATE_TEXT.match(source, at).end()  # type: ignore[union-attr] # matches nothing at least
        if source.startswith("`", at):
            return at + 1
        if not source.startswith("${", at):
            raise Unclosed("string", start)
        at = _end_of_braces(source, at + 2, start)


def _end_of_braces(source: str, at: int, start: int) -> int:
    depth = 1
    while depth:
        at = _INSIDE_BRACES.match(source, at).end()  # type: ignore[union-attr] # as above
        mark = source[at : at + 1]
        if not mark:
            raise Unclosed("string", start)
        if mark in "'\"`" or source.startswith("/*", at):
            at = end_of_literal(source, at)
        else:
            depth += {"{": 1, "}": -1}.get(mark, 0)
            at += 1
    return at
