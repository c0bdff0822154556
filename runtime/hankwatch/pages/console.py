"""Pages of the console: the report's templates in a frame that is live."""

from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from hankwatch import __version__
from hankwatch.pages.render import environment

Asset = Literal["style.css", "console.css", "run.css", "console.js"]
ASSETS: Final[dict[Asset, str]] = {
    "style.css": "text/css; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "run.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
}
"""What a page loads, from this server alone, with its media type."""


def console_page(name: str, **context: Any) -> str:
    """The page ``console/NAME.html.j2`` as HTML; nothing in ``context`` is ever more than text in it."""
    return environment().get_template(f"console/{name}.html.j2").render(context | {"version": __version__})


def compile_pages() -> None:
    """Make all templates ready, also those that others include: the first page does not wait for them."""
    templates = environment()
    for name in templates.list_templates(filter_func=lambda name: name.endswith(".html.j2")):
        templates.get_template(name)


@cache
def asset(name: Asset) -> bytes:
    """One of ``ASSETS``."""
    folder = files("hankwatch.pages") / "templates"
    return (folder / ("" if name == "style.css" else "console") / name).read_bytes()
