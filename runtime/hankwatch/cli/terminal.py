"""Text for people on a terminal: colours, tables, nothing raw. Imported when there is something to show."""

from typing import IO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hankwatch.core.text import strip_controls

_PIPED_WIDTH = 200
"""Nobody sees where a pipe's lines end, so nothing is folded there."""


class _Harmless(RenderHook):
    """Whatever is printed: its text loses terminal escapes, wherever in it they stand."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Stripped(renderable) for renderable in renderables]


class _Stripped:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(strip_controls(segment.text), segment.style)


def console(file: IO[str]) -> Console:
    """Prints text as it is: no markup, no control characters; plain when piped or with ``NO_COLOR``."""
    made = Console(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        width=None if file.isatty() else _PIPED_WIDTH,
    )
    made.push_render_hook(_Harmless())
    return made


def print_line(console: Console, line: Text) -> None:
    """One line; where there are no colours a tenth of the work of ``print``."""
    if console.is_terminal:
        console.print(line)
    else:
        console.file.write(strip_controls(line.plain) + "\n")
        console.file.flush()


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table; columns that begin with ``#`` hold numbers."""
    made = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column.lstrip("#"), justify="right" if column.startswith("#") else "left", overflow="fold")
    return made
