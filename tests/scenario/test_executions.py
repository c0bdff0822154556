"""Who may run where, and what keeps a run from starting at all."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, sentinel
from tests.support.laws import transition
from tests.support.runs import (
    HANKWATCH,
    Ran,
    command,
    environment,
    journaled,
    run_here,
    stand_in,
    until,
    write_hank,
)

from hankwatch.app import open_run
from hankwatch.core.errors import ConfigError, JournalLocked, UsageError
from hankwatch.options import RunOptions
from hankwatch.testing import ScriptedModel

INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
ENDS: list[Any] = [["line", INIT], ["line", RESULT], ["until_eof"]]


def watched(folder: Path, config: dict[str, Any] | str, *, required: bool) -> Path:
    entry = {"sentinelConfig": "observer.json", "settings": {"failCodonIfNotLoaded": required}}
    return write_hank(folder, codon(sentinels=[entry]), files={"observer.json": config})


async def test_a_live_execution_is_refused_naming_its_holder(tmp_path: Path) -> None:
    hank = write_hank(tmp_path / "hank", codon())
    options = RunOptions(hank, execution=tmp_path / "run")
    async with open_run(options, environ=environment()) as live:
        lock = json.loads((tmp_path / "run" / ".hankweave" / "runtime.lock").read_text())
        assert lock["run"] == live.run_id
        for start_new in (False, True):
            with pytest.raises(JournalLocked, match=live.run_id):
                await run_here(hank, tmp_path / "run", start_new=start_new)


@pytest.mark.slow
def test_the_command_refuses_a_live_execution_with_exit_3(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", ["line", INIT], ["hang"])
    hank = write_hank(tmp_path / "hank", codon())
    arguments = ("run", hank, "-e", tmp_path / "run")
    with command(*arguments, environ=agent.environ, cwd=tmp_path) as first:
        until(lambda: journaled(tmp_path / "run", "codon.started"))
        with command(*arguments, "--start-new", environ=agent.environ, cwd=tmp_path, argv=HANKWATCH) as second:
            _, complaints = second.communicate(timeout=15)
        first.terminate()
        first.communicate(timeout=15)
    assert second.returncode == 3
    assert f"process {first.pid}".encode() in complaints
    assert b"error[execution-locked]" in complaints


async def test_a_used_execution_wants_start_new_and_keeps_its_history(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", *ENDS)
    hank = write_hank(tmp_path / "hank", codon())
    first = await run_here(hank, tmp_path / "run", environ=agent.environ)
    before = first.journal.read_bytes()
    with pytest.raises(UsageError, match="was used before"):
        await run_here(hank, tmp_path / "run", environ=agent.environ)
    assert first.journal.read_bytes() == before
    second = await run_here(hank, tmp_path / "run", environ=agent.environ, start_new=True)
    assert second.journal.read_bytes().startswith(before)
    assert [transition(event) for event in second.events].count("RunCompleted") == 2


async def test_a_hanks_own_folder_is_never_written(tmp_path: Path) -> None:
    hank = write_hank(tmp_path / "hank", codon())
    with pytest.raises(UsageError, match="the hank's own folder"):
        await run_here(hank, tmp_path / "hank" / ".." / "hank")
    assert [path.name for path in (tmp_path / "hank").iterdir()] == ["hank.json"]


async def test_nothing_is_written_before_all_that_can_be_checked_is_in_order(tmp_path: Path) -> None:
    hank = write_hank(tmp_path / "hank", codon(agent="recorded:missing.jsonl"))
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        await run_here(hank, tmp_path / "run")
    with pytest.raises(UsageError, match="does not exist"):
        async with open_run(RunOptions(write_hank(tmp_path / "other", codon()), tmp_path / "none", tmp_path / "run")):
            pass
    assert not (tmp_path / "run").exists()


FAULTS: dict[str, dict[str, Any] | str] = {
    "no JSON": "{",
    "no trigger": {"id": "observer"},
    "a template that does not parse": sentinel(userPromptText="{% if %}"),
    "a prompt file that is missing": {**sentinel(userPromptFile="none.md"), "userPromptText": "{{ it.events }}"},
}


@pytest.mark.parametrize("case", FAULTS)
async def test_a_required_sentinel_with_a_fault_keeps_the_run_from_starting(tmp_path: Path, case: str) -> None:
    hank = watched(tmp_path / "hank", FAULTS[case], required=True)
    with pytest.raises(ConfigError):
        await run_here(hank, tmp_path / "run", model=ScriptedModel())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("case", FAULTS)
async def test_an_optional_sentinel_with_a_fault_is_left_out_and_named(tmp_path: Path, case: str) -> None:
    agent = stand_in(tmp_path / "agent", *ENDS)
    hank = watched(tmp_path / "hank", FAULTS[case], required=False)
    ran = await run_here(hank, tmp_path / "run", environ=agent.environ, model=ScriptedModel())
    assert ran.completed()["success"] is True
    (error,) = ran.of("sentinel.error")
    assert error.data["errorType"] == "load-failed"
    assert ran.result is not None
    assert [(missing.codon_id, missing.reason) for missing in ran.result.not_loaded] == [("one", error.data["message"])]


UNAVAILABLE = {"a missing key": "anthropic/claude-haiku-4-5", "an unknown model": "acme/none-1"}


@pytest.mark.parametrize("case", UNAVAILABLE)
async def test_a_required_sentinel_without_its_model_fails_the_codon(tmp_path: Path, case: str) -> None:
    hank = watched(tmp_path / "hank", sentinel(model=UNAVAILABLE[case]), required=True)
    ran = await run_here(hank, tmp_path / "run")
    completed = ran.completed()
    assert completed["success"] is False
    assert completed["failureReason"]["type"] == "sentinel-load-failure"
    assert completed["failureReason"]["sentinelRefs"] == ["observer"]
    assert ran.of("codon.started") == []


@pytest.mark.slow
def test_a_sentinel_that_is_left_out_is_visible_on_the_terminal(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", *ENDS)
    hank = watched(tmp_path / "hank", sentinel(model="acme/none-1"), required=False)
    with command("run", hank, "-e", tmp_path / "run", environ=agent.environ, cwd=tmp_path) as child:
        shown, _ = child.communicate(timeout=15)
    assert child.returncode == 0
    assert b"warning: sentinel observer of one did not run: model acme/none-1" in shown
    assert Ran(tmp_path / "run").completed()["success"] is True


@pytest.mark.slow
def test_a_failed_codon_is_exit_1(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", ["stderr_text", "no licence"], ["exit", 2])
    hank = write_hank(tmp_path / "hank", codon())
    with command("run", hank, "-e", tmp_path / "run", environ=agent.environ, cwd=tmp_path) as child:
        shown, complaints = child.communicate(timeout=15)
    assert child.returncode == 1
    assert b"no licence" in shown
    assert complaints == b""
