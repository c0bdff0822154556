"""kill -9 while checkpoints are made: each is there once or not at all, and the next one can be made."""

import random
from pathlib import Path

import pytest
from tests.support.checkpoints import git, open_checkpoints, save
from tests.support.killed import killed_after
from tests.support.workspaces import execution, write

from hankwatch.core.clock import SystemClock
from hankwatch.processes import kill_marked

SAVING = """
import anyio
from pathlib import Path
from tests.support.checkpoints import *
from tests.support.workspaces import write
layout = Layout(Path(sys.argv[2]))
async def main():
    print("begun", flush=True)
    checkpoints = await Checkpoints.open(
        layout, environ=dict(os.environ), marker=sys.argv[3], clock=SystemClock()
    )
    await checkpoints.begin("r-1")
    for number in range(20):
        write(layout.agent_root, {f"{n}": f"{number}-{n}" for n in range(50)})
        await save(checkpoints, f"c{number}")
anyio.run(main)
"""


async def check_killed_checkpoints(tmp_path: Path, seed: int) -> None:
    layout = execution(tmp_path)
    marker = f"test-killed-{tmp_path.name}-{seed}/git"
    killed_after(SAVING, random.Random(seed).uniform(0.0, 1.5), str(layout.root), marker)
    await kill_marked(marker, clock=SystemClock())  # as a resumed run ends its orphans
    checkpoints = await open_checkpoints(layout)
    before = [saved.key.codon_id for saved in await checkpoints.of_run("r-1")]
    assert before == [f"c{number}" for number in range(len(before))]
    write(layout.agent_root, {"last": "1"})
    saved = [await save(checkpoints, f"c{number}") for number in range(len(before) + 1)]
    assert [one.is_new for one in saved] == [False] * len(before) + [True]
    files = await checkpoints.files(saved[-1].sha)
    assert "last" in files
    assert git(layout, "rev-list", "--count", "run-r-1").strip() == str(len(before) + 1)
    git(layout, "fsck", "--strict", "--no-dangling")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_checkpoints_killed_anywhere_are_whole_and_single(tmp_path: Path, seed: int) -> None:
    await check_killed_checkpoints(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
async def test_checkpoints_killed_at_a_hundred_points_are_whole_and_single(tmp_path: Path, seed: int) -> None:
    await check_killed_checkpoints(tmp_path, seed)
