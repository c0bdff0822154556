"""Does a prompt show the events it is about? Looked up in its text, without rendering it (spec hank 1)."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hankwatch.sentinels.prompts import Template

if TYPE_CHECKING:
    from jinja2 import nodes

_EVENTS: Final = "events"
_CONTEXT: Final = "it"


def shows_events(template: Template) -> bool:
    """Whether something that comes from ``it.events`` is printed, be it through loops and variables.

    True for a template that does not parse: that is a fault of its own.
    """
    return _eta_shows(template.source) if template.engine == "eta" else _jinja_shows(template.source)


def _jinja_shows(source: str) -> bool:
    if _EVENTS not in source and _CONTEXT not in source:
        return False
    from jinja2 import Environment, TemplateSyntaxError, nodes  # only validation looks into prompts

    try:
        tree = Environment(autoescape=False).parse(source)  # noqa: S701 - parsed, never rendered
    except (TemplateSyntaxError, RecursionError):
        return True
    printed = [part for output in tree.find_all(nodes.Output) for part in output.nodes]
    tainted = _tainted_by_jinja(tree)
    return any(_reads(part, tainted) for part in printed)


def _tainted_by_jinja(tree: "nodes.Template") -> set[str]:
    """The names that hold something of the events, by loops and assignments, in whatever order they stand."""
    tainted = {_EVENTS}
    bindings = list(_bindings(tree))
    while True:
        more = {name for names, value in bindings if _reads(value, tainted) for name in names} - tainted
        if not more:
            return tainted
        tainted |= more


def _bindings(tree: "nodes.Template") -> "Iterator[tuple[set[str], nodes.Node]]":
    """(names that are given a value, where the value comes from)."""
    from jinja2 import nodes

    for loop in tree.find_all(nodes.For):
        yield _names(loop.target), loop.iter
    for assignment in tree.find_all(nodes.Assign):
        yield _names(assignment.target), assignment.node
    for block in tree.find_all(nodes.AssignBlock):
        for part in block.body:
            yield _names(block.target), part
    for scope in tree.find_all(nodes.With):
        for target, value in zip(scope.targets, scope.values, strict=True):
            yield _names(target), value


def _names(target: "nodes.Node") -> set[str]:
    from jinja2 import nodes

    found = {name.name for name in (target, *target.find_all(nodes.Name)) if isinstance(name, nodes.Name)}
    return found | ({target.name} if isinstance(target, nodes.NSRef) else set())


def _reads(node: "nodes.Node", tainted: set[str]) -> bool:
    from jinja2 import nodes

    match node:
        case nodes.Getattr(node=nodes.Name(name="it"), attr=attribute):
            return bool(attribute == _EVENTS)
        case nodes.Getitem(node=nodes.Name(name="it"), arg=nodes.Const(value=key)):
            return bool(key == _EVENTS)
        case nodes.Name(name=name):
            return name in tainted or name == _CONTEXT
        case _:
            return any(_reads(child, tainted) for child in node.iter_child_nodes())


_TAG: Final = re.compile(r"<%[-_]?([=~]?)(.*?)[-_]?%>", re.DOTALL)
_BY_KEY: Final = re.compile(r"""\bit\s*\[\s*(["'])events\1\s*\]""")
_NO_CODE: Final = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_READ: Final = re.compile(r"(?<![\w$.])it(?:\s*\??\.\s*events\b|(?![\w$])(?!\s*(?:\??\.|\[)))")
_IDENTIFIER: Final = re.compile(
    r"(?<![\w$.])"
    r"(?!(?:it|const|let|var|for|of|in|if|else|while|do|return|function|new|typeof|null|undefined|true|false|switch|case|"
    r"break|continue|default|throw|try|catch|finally|delete|void|this|class|async|await|yield|Array|Boolean|Date|JSON|Map|"
    r"Math|Number|Object|RegExp|Set|String)(?![\w$]))"
    r"[A-Za-z_$][\w$]*"
)
"""Names of the author's own."""


def _eta_shows(source: str) -> bool:
    tags = [(kind, _NO_CODE.sub('""', _BY_KEY.sub("it.events", code))) for kind, code in _TAG.findall(source)]
    statements = [code for kind, code in tags if not kind]
    tainted: set[str] = set()
    while True:
        reading = [code for code in statements if _eta_reads(code, tainted)]
        # Which of a statement's names it binds would take a parser; all of them is near enough for a lint.
        more = {name for code in reading for name in _IDENTIFIER.findall(code)} - tainted
        if not more:
            return any(_eta_reads(code, tainted) for kind, code in tags if kind)
        tainted |= more


def _eta_reads(code: str, tainted: set[str]) -> bool:
    return bool(_READ.search(code)) or not tainted.isdisjoint(_IDENTIFIER.findall(code))
