"""Which pages there are, and whether those on disk say what the code says."""

from collections.abc import Callable, Mapping
from pathlib import Path

from hankwatch.config.resources import PACKAGE
from hankwatch.reference import commands, environment, events, execution, faults, models, python

PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": commands.page,
    "hank.md": models.hank,
    "sentinel.md": models.sentinel,
    "check.md": models.check,
    "watch.md": models.watch,
    "settings.md": models.settings,
    "environment.md": environment.page,
    "events.md": events.page,
    "diagnostics.md": faults.diagnostics,
    "errors.md": faults.errors,
    "execution.md": execution.page,
    "python.md": python.page,
}
"""File name -> what makes its text."""
_FOLDER = PACKAGE.parent.parent / "docs" / "reference"
_MARK = "<!-- Made by `make docs` from the code; edits here are lost. -->\n\n"


def stale(folder: Path = _FOLDER) -> list[str]:
    """The files of ``folder`` that are missing, left over, or differ from what the code says."""
    made = {name: _MARK + page() for name, page in PAGES.items()}
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))


def write(folder: Path = _FOLDER) -> list[Path]:
    """Write every page; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in PAGES]
    for path in paths:
        path.write_text(_MARK + PAGES[path.name](), encoding="utf-8")
    return paths
