"""``init``: a hank to begin with, one that works before anything is changed (spec cli)."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hankwatch.config.resources import resource
from hankwatch.core.errors import UsageError

_STARTER = ("fixtures", "starter")
_GITIGNORE = "gitignore"
"""Its name among the shipped files, where it must ignore nothing."""
_SCHEMAS = ("hank", "sentinel", "check")


@dataclass(frozen=True, slots=True)
class Scaffold:
    """What was made."""

    folder: Path
    files: tuple[Path, ...]
    """In order of their names, relative to ``folder``."""
    kept: tuple[Path, ...]
    """Files that were there and do no harm: a `.gitignore` of somebody's own."""


def scaffold(folder: Path) -> Scaffold:
    """Make a hank with a prompt, a sentinel, a recording, a check and the schemas that editors use.

    All of it or nothing: no file that exists is touched, and a failure leaves nothing behind.

    Raises:
        UsageError: some of it exists, or what has to be a folder is none.
        OSError: a file cannot be written.
    """
    sources = dict(sorted(_sources()))
    there = [path for path in sources if (folder / path).exists() or (folder / path).is_symlink()]
    kept = tuple(path for path in there if path.name == ".gitignore")
    if in_the_way := [str(path) for path in there if path not in kept]:
        hint = "nothing was written; name another folder"
        if "hank.json" in in_the_way:
            hint += f", or look at the hank that is there with `hankwatch validate {folder}`"
        raise UsageError(f"{folder} has {', '.join(in_the_way)} already", hint=hint)
    written = tuple(path for path in sources if path not in kept)
    with ExitStack() as undo:
        for path in written:
            _make_folder((folder / path).parent, undo)
            with (folder / path).open("xb") as file:
                undo.callback((folder / path).unlink)
                file.write(sources[path].read_bytes())
        undo.pop_all()
    return Scaffold(folder, written, kept)


def _sources() -> Iterator[tuple[Path, Path]]:
    """Every file of a scaffold: where it goes, and the shipped file that it is a copy of."""
    starter = resource(*_STARTER)
    for file in starter.rglob("*"):
        if file.is_file():
            path = file.relative_to(starter)
            yield (path.with_name(".gitignore") if path.name == _GITIGNORE else path), file
    for name in _SCHEMAS:
        yield Path("schemas", f"{name}.schema.json"), resource("schemas", f"{name}.schema.json")


def _make_folder(folder: Path, undo: ExitStack) -> None:
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            raise UsageError(f"{folder} is no folder", hint="nothing was written; name another place")
        _make_folder(folder.parent, undo)
        folder.mkdir()
        undo.callback(folder.rmdir)
