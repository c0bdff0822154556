"""What the workspace's ``.gitignore`` files leave out, as git itself reads them."""

import os
from pathlib import Path

from pathspec import GitIgnoreSpec, Pattern

from hankwatch.core.errors import PathRefused
from hankwatch.runner.inside import open_inside

_MAX_BYTES = 1024 * 1024


class Ignores:
    """The rules as they stand when first asked; made anew for every look at the workspace.

    Every folder may have its own ``.gitignore``; the deepest one that has an opinion wins, and what lies in an
    ignored folder cannot be taken back. A ``.gitignore`` that is a link or cannot be read says nothing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec | None] = {}
        self._folders: dict[str, bool] = {"": False}

    def ignored(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether git would leave out ``path``, relative to the root."""
        if is_folder:
            if path not in self._folders:
                self._folders[path] = self._decide(path, f"{path}/")
            return self._folders[path]
        return self._decide(path, path)

    def _decide(self, path: str, asked: str) -> bool:
        parent = path.rpartition("/")[0]
        if self.ignored(parent, is_folder=True):
            return True
        folder = parent
        while True:
            verdict = self._verdict(folder, asked)
            if verdict is not None:
                return verdict
            if not folder:
                return False
            folder = folder.rpartition("/")[0]

    def _verdict(self, folder: str, asked: str) -> bool | None:
        if folder not in self._specs:
            self._specs[folder] = self._read(folder)
        spec = self._specs[folder]
        if spec is None:
            return None
        below = asked[len(folder) + 1 :] if folder else asked
        return next((pattern.include for pattern in reversed(spec.patterns) if _means(pattern, below)), None)

    def _read(self, folder: str) -> GitIgnoreSpec | None:
        try:
            with open_inside(self._root, f"{folder}/.gitignore" if folder else ".gitignore") as fd:
                text = os.read(fd, _MAX_BYTES).decode("utf-8", "surrogateescape")
        except (OSError, PathRefused):
            return None
        return GitIgnoreSpec.from_lines(text.removeprefix("\ufeff").split("\n"))


def _means(pattern: Pattern, path: str) -> bool:
    """Whether the pattern is about ``path`` itself; a folder above it has been asked for before."""
    match = pattern.match_file(path) if pattern.include is not None else None
    if match is None:
        return False
    if match.match.groupdict().get("ps_d") is not None:
        return bool(match.match.start("ps_d") == len(path) - 1)
    # "folder/**" is about what lies in the folder, not about "folder/" itself.
    return not (path.endswith("/") and match.match.end() == len(path))
