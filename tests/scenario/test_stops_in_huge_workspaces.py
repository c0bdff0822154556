"""A stop is heard while a huge workspace is looked at, by checkpoints and for watched files alike."""

import shutil
from pathlib import Path

import anyio
import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, write_hank
from tests.support.workspaces import look_without_end

from hankwatch.app import open_run
from hankwatch.core.limits import within
from hankwatch.options import RunOptions

BUDGET_S = 3
pytestmark = pytest.mark.slow


async def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: int, path: str) -> Ran:
    """A run that is stopped once it looks at the workspace for longer, after that many looks."""
    hank = write_hank(
        tmp_path / "hank",
        codon(agent="exec:true", checkpointedFiles=["**/*"]),
        files={"hankwatch.toml": f"[run]\nstop_budget_s = {BUDGET_S}\n"},
    )
    options = RunOptions(hank, execution=tmp_path / "run")
    huge = look_without_end(monkeypatch, after=after)
    async with open_run(options, environ=environment({"PATH": path})) as live, anyio.create_task_group() as tasks:

        async def stop() -> None:
            await anyio.to_thread.run_sync(huge.begun.wait)
            live.stop()

        tasks.start_soon(stop)
        result = await within(live.clock, BUDGET_S + 8.0, live.carry_out)
    return Ran(tmp_path / "run", result)


@pytest.mark.parametrize("has_git", [True, False])
async def test_a_stop_while_files_are_looked_for_fails_the_codon_before_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_git: bool
) -> None:
    path = environment()["PATH"] if has_git and shutil.which("git") else str(tmp_path)
    ran = await stopped(tmp_path, monkeypatch, after=int(has_git), path=path)
    assert ran.completed()["failureReason"]["message"] == "stopped by request"
    assert ran.of("codon.started", "file.updated", "filetree.updated") == []
    assert ran.result is not None
    assert ran.result.success is False


async def test_a_stop_during_the_first_checkpoint_ends_the_run_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = await stopped(tmp_path, monkeypatch, after=0, path=environment()["PATH"])
    assert [event.data["code"] for event in ran.of("error")] == ["checkpoint-late"]
    assert ran.result is not None
    assert ran.result.reason == "stopped"
