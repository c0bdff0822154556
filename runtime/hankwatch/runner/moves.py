"""Many renames as one: all done, or all undone, whatever kills the process in between.

The list is written down before the first rename. From then on what stands where says how far it came, so doing it
again goes on, and undoing it takes back exactly what was done.
"""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

from hankwatch.core.errors import CheckpointFailed
from hankwatch.runner.copying import remove
from hankwatch.runner.durable import read_json, write_json

SAFE: Final = "safe"
"""Below the plan's folder: what was displaced."""
STAGE: Final = "stage"
"""Below the plan's folder: what is to be placed."""

Kind = Literal["folder", "displace", "restore", "place"]
"""``folder``: ``target`` is made · ``displace``: into ``SAFE`` · ``restore``: from elsewhere, may fail alone ·
``place``: from ``STAGE``."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change; paths are relative to the execution directory."""

    kind: Kind
    source: str
    """Empty for ``folder``."""
    target: str
    optional: bool = False
    """Its failure is told, and the rest goes on."""


@dataclass(slots=True)
class MovePlan:
    """The steps, their state, and what else has to be known to settle them. Everything blocks: for a thread."""

    root: Path
    """The execution directory."""
    folder: Path
    """Belongs to the plan alone; below ``root``, on its file system."""
    steps: tuple[Step, ...]
    note: dict[str, Any]
    """JSON, kept for whoever settles the plan."""
    state: Literal["doing", "done", "undoing"] = "doing"

    @classmethod
    def load(cls, root: Path, folder: Path) -> Self | None:
        """The plan that was begun and not settled; None without one, and then what is left of others is removed.

        Raises:
            CheckpointFailed: there is one that cannot be read.
        """
        try:
            data = read_json(folder / "plan.json")
            if data is None:
                remove(folder)
                return None
            steps = tuple(Step(**step) for step in data["steps"])
            return cls(root, folder, steps, data["note"], data["state"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointFailed("reading an unsettled rollback", str(error)) from error

    def begin(self) -> None:
        """Write it down; nothing has moved when this fails. Raises ``OSError``."""
        self._write()

    def carry_out(self) -> dict[str, str]:
        """Do what is not done yet; why optional steps failed, by their source.

        Raises:
            OSError: a step failed. ``undo`` takes back the others.
        """
        failed: dict[str, str] = {}
        for step in self.steps:
            try:
                self._do(step)
            except OSError as error:
                if not step.optional:
                    raise
                failed[step.source] = str(error)
        self.state = "done"
        self._write()
        return failed

    def undo(self) -> None:
        """Take back what was done, in reverse, and forget the plan.

        Raises:
            OSError: a step could not be taken back; the plan stands, and ``undo`` may be called again.
        """
        self.state = "undoing"
        self._write()
        for step in reversed(self.steps):
            self._take_back(step)
        self.discard()

    def discard(self) -> None:
        """Forget the plan and remove what it displaced. Raises ``OSError``; nothing of the workspace is lost then."""
        (self.folder / "plan.json").unlink(missing_ok=True)  # first: what is left without it is rubbish
        remove(self.folder)

    def _do(self, step: Step) -> None:
        source, target = self.root / step.source, self.root / step.target
        if step.kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
        elif step.kind == "displace":
            # What is safe was displaced before; what stands at the source now has been placed there.
            if not os.path.lexists(target) and os.path.lexists(source):
                _rename(source, target)
        elif os.path.lexists(source):
            if os.path.lexists(target):
                raise FileExistsError(f"{step.target} stands in the way")
            _rename(source, target)
        elif not os.path.lexists(target):
            raise FileNotFoundError(f"{step.source} is not there")

    def _take_back(self, step: Step) -> None:
        source, target = self.root / step.source, self.root / step.target
        if step.kind == "folder":
            with suppress(OSError):  # it was there before, or holds what was never ours
                target.rmdir()
        elif os.path.lexists(target) and not os.path.lexists(source):
            _rename(target, source)

    def _write(self) -> None:
        steps = [asdict(step) for step in self.steps]
        write_json(self.folder / "plan.json", {"state": self.state, "note": self.note, "steps": steps})


def _rename(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def displace(path: str, folder: str, *, optional: bool = False) -> Step:
    """The step that puts ``path`` to where it is safe; ``folder`` is the plan's, relative to the root."""
    return Step("displace", path, f"{folder}/{SAFE}/{path}", optional)


def place(path: str, folder: str, staged: str) -> Step:
    """The step that puts a staged file in its place."""
    return Step("place", f"{folder}/{STAGE}/{staged}", path)
