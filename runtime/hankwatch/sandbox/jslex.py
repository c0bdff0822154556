"""Just enough of JavaScript's spelling to step over what may hold any character: literals and comments."""

import re

_SIMPLE = re.compile(
    r"""
      ' (?: \\ (?: \r\n | . ) | [^'\\\n\r] )* '
    | " (?: \\ (?: \r\n | . ) | [^"\\\n\r] )* "
    | /\* .*? \*/
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_COMMENT = re.compile(r"//[^\n]*")
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/")
_ENDS_A_VALUE = re.compile(r"[\w$)\]}'\"`]")  # so that a slash after it divides
_TEMPLATE_TEXT = re.compile(r"(?:\\.|\$(?!\{)|[^\\`$])*", re.DOTALL)
_BEGINS = re.compile(r"['\"`/]")
_VISIBLE = re.compile(r"[^\n]")
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


def blanked(source: str) -> str:
    """``source`` with spaces for whatever stands inside literals and comments; newlines and offsets stay.

    Delimiters stay too, but for those of regexes and comments. Raises ``Unclosed``.
    """
    pieces: list[str] = []
    at = 0
    while found := _BEGINS.search(source, at):
        start = found.start()
        end = _end_of_anything(source, start)
        kept = 1 if source[start] in "'\"`" else 0
        pieces += [source[at : start + kept], _VISIBLE.sub(" ", source[start + kept : end - kept])]
        pieces.append(source[end - kept : end])
        at = end
    return "".join([*pieces, source[at:]])


def _end_of_anything(source: str, at: int) -> int:
    if source.startswith("//", at):
        return _LINE_COMMENT.match(source, at).end()  # type: ignore[union-attr] # it does begin there
    if source[at] == "/" and source[at + 1 : at + 2] != "*":
        regex = None if _ENDS_A_VALUE.match(source[:at].rstrip()[-1:]) else _REGEX.match(source, at)
        return regex.end() if regex else at + 1
    return end_of_literal(source, at)


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
