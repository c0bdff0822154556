"""Shadow repositories for tests, and git as a person would use it to look at them."""

import os
import subprocess
from uuid import uuid4

from hankwatch.core.clock import SystemClock
from hankwatch.runner.checkpoints import Checkpoints, Key, Saved, Status
from hankwatch.runner.globs import Globs
from hankwatch.runner.layout import Layout

EVERYTHING = Globs(["**"])
AT_MS = 1_800_000_000_123


async def open_checkpoints(layout: Layout, environ: dict[str, str] | None = None) -> Checkpoints:
    """The repository of an execution, its children marked like nobody else's."""
    marker = f"test-{uuid4().hex}/git"
    return await Checkpoints.open(layout, environ=environ or dict(os.environ), marker=marker, clock=SystemClock())


async def save(
    checkpoints: Checkpoints,
    codon_id: str = "one",
    status: Status = "completed",
    *,
    run: str = "r-1",
    attempt: int = 1,
    globs: Globs = EVERYTHING,
) -> Saved:
    """One checkpoint with little said about it."""
    return await checkpoints.save(Key(run, codon_id, attempt, status), f"Codon {codon_id}", globs, AT_MS)


def git(layout: Layout, *arguments: str) -> str:
    """What git prints about the shadow repository."""
    folder = layout.managed / "checkpoints" / ".hankweavecheckpoints"
    command = ["git", f"--git-dir={folder}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
