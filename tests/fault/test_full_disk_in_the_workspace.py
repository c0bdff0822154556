"""A disk with no room left under checkpoints, rollbacks and rigs: named, and nothing of the workspace lost."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.support.checkpoints import open_checkpoints, save
from tests.support.killed import ROOT
from tests.support.rollbacks import History
from tests.support.workspaces import contents, execution

from hankwatch.runner.archive import Archive
from hankwatch.runner.rollback import recover

LIMITED = """
import anyio, os, resource, signal, sys
from pathlib import Path
from tests.support.rollbacks import *
from tests.support.checkpoints import *
from hankwatch.core.errors import CheckpointFailed
from hankwatch.runner.copying import replace_with_copy
from hankwatch.runner.rollback_plan import To, choose
root = Path(sys.argv[1])
async def main():
    history = await History.begin(Layout(root))
    await history.end("one", change={"large": LARGE})
    await history.end("two", change={"large": "2"})
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    try:
        await WHAT
    except (CheckpointFailed, OSError) as error:
        print("failed:", type(error).__name__)
LARGE = os.urandom(1_500_000).hex()
async def checkpoint(history):
    (root / "agentRoot/other").symlink_to("x")
    os.link(root.parent / "big", root / "agentRoot/big")
    await save(history.checkpoints, "three")
async def rollback(history):
    await history.go(choose(history.thread, To(codon="one")))
async def copy(history):
    replace_with_copy(root.parent / "big", root / "agentRoot/large", staging=root / ".hankweave/tmp")
(root.parent / "big").write_text(os.urandom(1_500_000).hex())
anyio.run(main)
"""


def run_limited(root: Path, what: str) -> str:
    code = textwrap.dedent(LIMITED).replace("WHAT", f"{what}(history)")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
async def test_a_checkpoint_without_room_fails_and_the_next_one_is_whole(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    assert run_limited(layout.root, "checkpoint") == "failed: CheckpointFailed"
    before = contents(layout.agent_root)
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints, "three")
    assert saved.is_new
    assert set(await checkpoints.files(saved.sha)) == {"big", "large", "other"} == set(before)


@pytest.mark.slow
async def test_a_rollback_without_room_changes_nothing(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    assert run_limited(layout.root, "rollback") == "failed: CheckpointFailed"
    assert contents(layout.agent_root) == {"large": "2"}
    assert recover(layout, Archive(layout), lambda _run: False) is None
    assert History(layout, await open_checkpoints(layout)).stands() == {"agentRoot/large": "2"}


@pytest.mark.slow
def test_a_rig_copy_without_room_leaves_what_was_there(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    assert run_limited(layout.root, "copy") == "failed: OSError"
    assert contents(layout.agent_root) == {"large": "2"}
    assert contents(layout.managed / "tmp") == {}
