"""Facts as a page: templates of this package, and nothing of an event is ever more than text in them."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hankwatch import __version__
from hankwatch.events.envelope import format_stamp
from hankwatch.pages import words
from hankwatch.pages.charts import CHART_HEIGHT, cost_chart, token_rows
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.problems import command, problems
from hankwatch.pages.timeline import HEIGHT, WIDTH, timeline
from hankwatch.pages.visible import visible

_HEADING = re.compile(r"#{1,6} ")


def html(facts: RunFacts) -> str:
    """One self-contained HTML file: no script, nothing loaded, complete as it stands."""
    return environment().get_template("report.html.j2").render(page_context(facts))


def page_context(facts: RunFacts) -> dict[str, Any]:
    """What the templates and each of their fragments know."""
    return {
        "facts": facts,
        "problems": problems(facts),
        "timeline": timeline(facts),
        "cost_chart": cost_chart(facts),
        "token_rows": token_rows(facts),
        "chart_height": CHART_HEIGHT,
        "lane_width": WIDTH,
        "lane_height": HEIGHT,
        "version": __version__,
        "command": lambda *parts: command(facts, *parts),
        "elapsed": since_start(facts),
    }


def since_start(facts: RunFacts) -> Callable[[int], str]:
    """Says how long after the run's start an instant was: ``+1.4 s``."""
    return lambda at_ms: "+" + words.duration(max(0, at_ms - facts.began_ms))


def add_words(environment: Environment) -> None:
    """The filters with which numbers become words."""
    environment.filters |= {
        "cost": _cost,
        "duration": words.duration,
        "number": words.number,
        "plural": words.plural,
        "size": words.size,
        "stamp": format_stamp,
        "day": _day,
        "shell": shlex.quote,
        "lines": _lines,
    }


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates of all pages."""
    made = Environment(
        loader=PackageLoader("hankwatch.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    add_words(made)
    return made


def _shown(value: object) -> object:
    """Applied to whatever a template prints: text loses what acts or hides; then it is escaped."""
    return value if isinstance(value, Markup) else visible(str(value))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a report, and how it is set: ``heading``, ``blank`` or ``plain``; its text stays as it is."""

    text: str
    look: str


def _lines(text: str) -> list[_Line]:
    return [
        _Line(line, "heading" if _HEADING.match(line) else "plain" if line.strip() else "blank")
        for line in text.split("\n")
    ]


def _cost(cost: Any) -> str:
    """Of a view with ``usd`` and ``complete``."""
    return words.money(cost.usd if cost.complete or cost.usd else None, unpriced=not cost.complete)


def _day(at_ms: int) -> str:
    """``30 November 2026, 20:35:44 UTC``."""
    stamp = format_stamp(at_ms)
    month = datetime(2000, int(stamp[5:7]), 1, tzinfo=UTC).strftime("%B")
    return f"{int(stamp[8:10])} {month} {stamp[:4]}, {stamp[11:19]} UTC"
