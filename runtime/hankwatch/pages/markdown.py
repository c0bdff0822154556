"""Facts as Markdown for a pull request: small, and whatever was recorded stays text there too.

What is not this project's own wording is printed in code spans or fenced blocks: there a forge makes no links,
images or tables of it and calls nobody by ``@name``.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hankwatch.pages.facts import RunFacts
from hankwatch.pages.render import add_words, page_context
from hankwatch.pages.visible import Excerpt, visible

LIMIT_CHARS = 60_000
"""A comment may be 65,536 characters long."""
_SIZES = ((12, 1_500), (6, 800), (3, 400), (1, 200), (0, 0))
"""Entries per sentinel and characters of each, tried in turn until all fits."""
_SPAN_CHARS = 200
_TICKS = re.compile("`+")
_OWN = re.compile(r"[\w ,.+$-]*", re.ASCII)


def markdown(facts: RunFacts) -> str:
    """At most ``LIMIT_CHARS`` characters; what is left out is counted."""
    template = _environment().get_template("report.md.j2")
    text = ""
    for entries, chars in _SIZES:
        text = template.render(page_context(facts), entries=entries, chars=chars)
        if len(text) <= LIMIT_CHARS:
            return text
    # By now every code span stands in a line of its own, and a whole line is no danger.
    return text[:LIMIT_CHARS].rpartition("\n")[0] + "\n"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hankwatch.pages"),
        autoescape=True,  # what is no Markup is wrapped by ``finalize`` before
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    add_words(environment)
    environment.filters |= {name: _unquoted(environment.filters[name]) for name in ("duration", "plural")}
    environment.filters |= {"fence": fence, "html": html_code, "cell": cell, "own": own}
    return environment


def _unquoted(words: Callable[..., str]) -> Callable[..., Markup]:
    """A filter of numbers, whose words need no code span."""
    return lambda *values: Markup(words(*values))  # noqa: S704 - numbers in our own words


def _shown(value: object) -> object:
    """Applied to whatever the template prints: numbers as they are, text as code."""
    return value if isinstance(value, Markup | int | float) else span(str(value))


def span(text: str) -> Markup:
    """One line of code: ``text`` without line ends, shortened."""
    line = " ".join(visible(text[: 10 * _SPAN_CHARS]).split())
    line = line if len(line) <= _SPAN_CHARS else line[: _SPAN_CHARS - 1] + "…"
    if not line:
        return Markup()
    ticks = "`" * (1 + max(map(len, _TICKS.findall(line)), default=0))
    room = " " if "`" in line else ""
    return Markup(f"{ticks}{room}{line}{room}{ticks}")  # noqa: S704 - in a code span nothing else is read


def cell(text: object) -> Markup:
    """``span`` for a cell of a table, where a bar would end it even inside of code."""
    return span(str(text).replace("|", "¦"))


def fence(excerpt: Excerpt, chars: int) -> Markup:
    """A block of its own, longer fenced than anything in it."""
    text = visible(excerpt.text[:chars])
    left_out = excerpt.left_out + max(0, len(excerpt.text) - chars)
    if left_out:
        text += f"\n… {left_out:,} more characters"
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return Markup(f"{ticks}text\n{text}\n{ticks}")  # noqa: S704 - in a fenced block nothing else is read


def html_code(text: object) -> Markup:
    """Inside of an HTML block, where Markdown is not read."""
    line = " ".join(visible(str(text)[: 10 * _SPAN_CHARS]).split())[:_SPAN_CHARS]
    return Markup("<code>{}</code>").format(line)


def own(text: object) -> Markup:
    """Words of this project, numbers and amounts, as they are; anything else as code. Not for what was recorded."""
    return Markup(escape(text)) if _OWN.fullmatch(str(text).replace("≥", "")) else span(str(text))  # noqa: S704 - checked
