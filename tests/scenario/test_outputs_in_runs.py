"""What codons made is copied to the output directory, where one is set (reference 3.2.18)."""

from pathlib import Path
from typing import Any

import anyio
from tests.support.hanks import codon
from tests.support.laws import transition
from tests.support.runs import Ran, Standin, run_here, stand_in, write_hank

from hankwatch.app import open_run
from hankwatch.core.limits import within
from hankwatch.options import RunOptions

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
RIG = [{"type": "command", "command": {"run": "echo made > report.txt"}}]


async def play(tmp_path: Path, *groups: dict[str, Any], output: bool = True, **fields: Any) -> Ran:
    agent = stand_in(tmp_path / "agent", INIT, ["line", RESULT], ["until_eof"])
    config = f'[run]\noutput_dir = "{tmp_path / "out"}"\n' if output else ""
    made = codon("one", rigSetup=RIG, outputFiles=list(groups), **fields)
    path = write_hank(tmp_path / "hank", made, codon("two"), files={"hankwatch.toml": config})
    return await run_here(path, tmp_path / "run", environ=agent.environ)


async def test_outputs_are_copied_before_they_are_archived(tmp_path: Path) -> None:
    group = {"copy": ["*.txt"], "beforeCopy": ["echo more >> report.txt"]}
    ran = await play(tmp_path, group, archiveOnSuccess=["report.txt"])
    assert (tmp_path / "out" / "report.txt").read_text() == "made\nmore\n"
    assert ran.of("archive.completed")[0].data["archivedPaths"] == ["report.txt"]
    assert ran.result is not None
    assert ran.result.success


async def test_without_an_output_directory_nothing_is_copied(tmp_path: Path) -> None:
    ran = await play(tmp_path, {"copy": ["*.txt"], "beforeCopy": ["touch ran"]}, output=False)
    assert not (ran.root / "agentRoot" / "ran").exists()


async def test_outputs_that_fail_end_the_run(tmp_path: Path) -> None:
    ran = await play(tmp_path, {"copy": ["*.txt"], "beforeCopy": ["exit 3"]})
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one"]
    assert [event.data["code"] for event in ran.of("error")] == ["output-failed"]
    assert transition(ran.events[-1]) == "RunFailed"
    assert ran.result is not None
    assert ran.result.reason == "outputs of codon one failed"


async def test_a_codon_that_its_budget_ended_has_outputs_too(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", INIT, ["hang"])
    made = codon(rigSetup=RIG, outputFiles=[{"copy": ["*.txt"]}], budget={"maxTimeSeconds": 0.2})
    config = f'[run]\noutput_dir = "{tmp_path / "out"}"\n'
    path = write_hank(tmp_path / "hank", made, files={"hankwatch.toml": config})
    await run_here(path, tmp_path / "run", environ=agent.environ)
    assert (tmp_path / "out" / "report.txt").exists()


def waiting_outputs(tmp_path: Path, command: str, **fields: Any) -> tuple[Path, Standin]:
    """A hank of two codons; before the outputs of ``one`` are copied ``command`` runs."""
    group = {"copy": ["*.txt"], "beforeCopy": [command]}
    made = codon("one", rigSetup=RIG, outputFiles=[group], archiveOnSuccess=["report.txt"], **fields)
    config = f'[run]\noutput_dir = "{tmp_path / "out"}"\n'
    path = write_hank(tmp_path / "hank", made, codon("two"), files={"hankwatch.toml": config})
    return path, stand_in(tmp_path / "agent", INIT, ["line", RESULT], ["until_eof"])


def check_copied(tmp_path: Path, ran: Ran) -> None:
    assert ran.result is not None
    assert ran.result.success
    assert (tmp_path / "out" / "report.txt").read_text() == "made\n"
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two"]
    assert [event.data["archivedPaths"] for event in ran.of("archive.completed")] == [["report.txt"]]


async def test_outputs_that_failed_are_copied_by_the_resume_that_can_and_archived_only_then(tmp_path: Path) -> None:
    path, agent = waiting_outputs(tmp_path, f"test -e {tmp_path / 'ready'}")
    failed = await run_here(path, tmp_path / "run", environ=agent.environ)
    assert failed.of("archive.completed") == []
    again = await run_here(path, tmp_path / "run", environ=agent.environ, resume=True)
    assert again.result is not None
    assert (again.result.success, again.result.reason) == (False, "outputs of codon one failed")
    assert [transition(event) for event in again.events].count("RunStarted") == 1, "there was nothing to go on with"
    (tmp_path / "ready").touch()
    check_copied(tmp_path, await run_here(path, tmp_path / "run", environ=agent.environ, resume=True))


async def test_outputs_whose_copying_a_stop_cut_short_are_copied_by_the_resume(tmp_path: Path) -> None:
    path, agent = waiting_outputs(tmp_path, f"test -e {tmp_path / 'ready'} || {{ touch ready; exec sleep 60; }}")
    async with (
        open_run(RunOptions(path, execution=tmp_path / "run"), environ=agent.environ) as live,
        anyio.create_task_group() as tasks,
    ):

        async def stop() -> None:
            while not await anyio.Path(tmp_path / "run" / "agentRoot" / "ready").exists():
                await live.clock.sleep(0.02)
            live.stop()

        tasks.start_soon(stop)
        result = await within(live.clock, 15.0, live.carry_out)
    assert (result.success, result.reason) == (False, "stopped while outputs of codon one were copied")
    (tmp_path / "ready").touch()
    check_copied(tmp_path, await run_here(path, tmp_path / "run", environ=agent.environ, resume=True))
