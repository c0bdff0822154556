"""``checkpointedFiles`` in runs: each change told once by its reporter, each attempt kept (spec hank 2, reference 3.7)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkpoints import git
from tests.support.hanks import codon, loop, sentinel
from tests.support.laws import moved_to, transition
from tests.support.runs import Ran, killed_after, run_here, stand_in, write_hank

from hankwatch.app import open_run
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.runner.layout import Layout
from hankwatch.testing import ScriptedModel

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
END: Sequence[Any] = (["line", RESULT], ["until_eof"])
WATCHED = {"checkpointedFiles": ["*.txt"]}


def message(kind: str, **content: Any) -> list[Any]:
    return ["line", {"type": kind, "message": {"id": "m", "content": [content]}}]


def wrote(name: str, text: str) -> list[Any]:
    """A call of the agent that writes a file, with its result."""
    call = message("assistant", type="tool_use", id="t-1", name="Write", input={"file_path": name, "content": text})
    return [call, ["file", name, text], message("user", type="tool_result", tool_use_id="t-1", content="ok")]


async def play(tmp_path: Path, *score: Any, codons: Sequence[dict[str, Any]], path: str | None = None) -> Ran:
    agent = stand_in(tmp_path / "agent", *score)
    if path is not None:
        agent.environ["PATH"] = f"{agent.folder / 'bin'}:{path}"
    hank = write_hank(tmp_path / "hank", *codons)
    return await run_here(hank, tmp_path / "run", environ=agent.environ, model=ScriptedModel("Seen."))


def updates(ran: Ran) -> list[tuple[str, str, str]]:
    found = [event.data for event in ran.of("file.updated")]
    return [(data["path"], data["action"], data["source"]["kind"]) for data in found]


def checkpoints(ran: Ran) -> list[tuple[str, str]]:
    """Codon and status of each that was told."""
    made = [e.data["transition"]["data"] for e in ran.events if transition(e) == "CheckpointCreated"]
    return [(data["codonId"], data["status"]) for data in made]


async def test_each_change_of_a_watched_file_is_told_once_by_its_reporter(tmp_path: Path) -> None:
    rig = [{"type": "command", "command": {"run": "echo before > old.txt; echo before > gone.txt"}}]
    unseen = [["file", "side.txt", "a"], ["file", "side.md", "not watched"], ["remove", "gone.txt"]]
    made = codon(rigSetup=rig, **WATCHED)
    ran = await play(tmp_path, INIT, *wrote("old.txt", "after"), *unseen, *END, codons=[made])
    assert sorted(updates(ran)) == [
        ("gone.txt", "created", "codon-start"),
        ("gone.txt", "deleted", "watcher"),
        ("old.txt", "created", "codon-start"),
        ("old.txt", "modified", "tool_use"),
        ("side.txt", "created", "watcher"),
    ]
    order = [moved_to(event) or event.type for event in ran.events]
    assert order.index("rig.setup.completed") < order.index("file.updated") < order.index("filetree.updated")
    assert order.index("filetree.updated") < order.index("initializing")
    last = len(order) - 1 - order[::-1].index("filetree.updated")
    assert last < order.index("codon.completed")
    tree = ran.of("filetree.updated")[-1].data["tree"]
    assert [node["path"] for node in tree] == ["old.txt", "side.txt"]


async def test_a_sentinels_report_in_the_workspace_is_no_change_of_the_agents(tmp_path: Path) -> None:
    trigger = {"type": "event", "on": ["tool.result"]}
    observer = sentinel(trigger=trigger, userPromptText="{{ it.events }}", output={"file": "notes/seen.txt"})
    made = codon(sentinels=[{"sentinelConfig": observer}], checkpointedFiles=["**/*.txt"])
    ran = await play(tmp_path, INIT, *wrote("a.txt", "a"), ["sleep", 0.5], *END, codons=[made])
    assert (ran.root / "agentRoot" / "notes" / "seen.txt").read_text() != ""
    assert updates(ran) == [("a.txt", "created", "tool_use")]


async def test_each_attempt_is_kept_with_the_files_of_all_codons_so_far(tmp_path: Path) -> None:
    rig = [{"type": "command", "command": {"run": "echo one > one.txt"}}]
    one = codon("one", rigSetup=rig, **WATCHED)
    again = loop(codon("b", checkpointedFiles=["*.md"]))
    writes = [INIT, ["file", "two.md", "two"], *END]
    ran = await play(tmp_path, ["calls", [INIT, *END], writes], codons=[one, again])
    assert checkpoints(ran) == [("one", "rig-setup"), ("one", "completed"), ("b#0", "completed"), ("b#1", "completed")]
    assert ran.of("rig.setup.completed")[0].data["createdCheckpoint"] is True
    order = [transition(e) if transition(e) == "CheckpointCreated" else moved_to(e) or e.type for e in ran.events]
    first = order.index("CheckpointCreated")
    assert order[first - 1 : first + 2] == ["starting", "CheckpointCreated", "rig.setup.completed"]
    ends = [e for e in ran.events if moved_to(e) == "completed"]
    shas = [e.data["transition"]["data"]["metadata"]["checkpointSha"] for e in ends]
    assert git(Layout(ran.root), "ls-tree", "--name-only", shas[0]).split() == ["one.txt"]
    assert git(Layout(ran.root), "ls-tree", "--name-only", shas[2]).split() == ["one.txt", "two.md"]
    snapshot = ran.of("state.snapshot")[-1].data["completedCodons"]
    assert [c["completionCheckpoint"] for c in snapshot] == shas[::-1]
    assert snapshot[-1]["rigSetupCheckpoint"]


async def test_a_fresh_run_begins_with_a_checkpoint_of_what_it_finds(tmp_path: Path) -> None:
    ran = await play(tmp_path, INIT, *END, codons=[codon(**WATCHED)])
    kinds = [transition(event) for event in ran.events]
    assert kinds.index("RunStarted") < kinds.index("InitialCheckpointSet") < kinds.index("CodonStarted")
    (initial,) = [e.data["transition"]["data"] for e in ran.events if transition(e) == "InitialCheckpointSet"]
    subjects = git(Layout(ran.root), "log", "--format=%H %s", f"run-{initial['runId']}").splitlines()
    assert subjects[-1] == f"{initial['sha']} initial [run:{initial['runId']}]"


async def test_a_failed_run_keeps_the_failed_attempt_and_its_exit(tmp_path: Path) -> None:
    ran = await play(tmp_path, INIT, ["file", "a.txt", "a"], ["exit", 1], codons=[codon(**WATCHED)])
    assert checkpoints(ran) == [("one", "error"), ("one", "exit")]
    kinds = [transition(event) or event.data.get("message", "") for event in ran.events]
    assert kinds[-3:][0].startswith("Shutting down")
    assert kinds[-2:] == ["CheckpointCreated", "RunFailed"]


async def test_a_skipped_codon_is_kept_as_such(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", INIT, ["file", "a.txt", "a"], ["hang"])
    hank = write_hank(tmp_path / "hank", codon(**WATCHED))
    async with open_run(RunOptions(hank, execution=tmp_path / "run"), environ=agent.environ) as live:

        def at_the_file(event: Event) -> None:
            if event.type == "file.updated":
                live.control.skip()

        live.stream.subscribe(at_the_file, name="test")
        result = await live.carry_out()
    assert result.success
    assert checkpoints(Ran(tmp_path / "run")) == [("one", "skipped")]


async def test_a_hank_that_watches_no_files_has_no_checkpoints(tmp_path: Path) -> None:
    ran = await play(tmp_path, INIT, ["file", "a.txt", "a"], *END, codons=[codon()])
    assert checkpoints(ran) == []
    assert ran.of("file.updated", "filetree.updated") == []
    assert not (ran.root / ".hankweave" / "checkpoints").exists()


async def test_without_git_a_run_says_so_once_and_goes_on(tmp_path: Path) -> None:
    made = [codon("one", **WATCHED), codon("two", **WATCHED)]
    ran = await play(tmp_path, INIT, *wrote("a.txt", "a"), *END, codons=made, path="/nonexistent")
    assert ran.result is not None
    assert ran.result.success
    assert checkpoints(ran) == []
    (error,) = ran.of("error")
    assert (error.data["code"], error.data["severity"], error.data["fatal"]) == ("git-missing", "warning", False)
    assert ("a.txt", "created", "tool_use") in updates(ran)


async def test_a_repository_that_breaks_under_a_run_costs_no_work(tmp_path: Path) -> None:
    breaks = [["file", "../.hankweave/checkpoints/.hankweavecheckpoints/HEAD", "nonsense"]]
    made = [codon("one", **WATCHED), codon("two", **WATCHED)]
    ran = await play(tmp_path, INIT, *breaks, *END, codons=made)
    assert ran.result is not None
    assert ran.result.success
    assert [event.data["code"] for event in ran.of("error")] == ["checkpoint-failed"]


async def test_a_killed_run_makes_and_tells_each_checkpoint_once(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", ["calls", [INIT, *wrote("a.txt", "a"), *END], [INIT, *END]])
    watched = codon("one", sentinels=[{"sentinelConfig": sentinel()}], **WATCHED)
    hank = write_hank(tmp_path / "hank", watched, codon("two", **WATCHED))
    whole = await run_here(hank, tmp_path / "whole", environ=agent.environ, model=ScriptedModel("Seen."))
    made = [event for event in whole.events if transition(event) == "CheckpointCreated"]
    ends = [event for event in whole.events if moved_to(event) == "completing-sentinels"]
    # The commit is there in each case; its transition was lost in the first, the end of its codon in the others.
    for number, event in enumerate((*ends, *made)):
        cut = killed_after(whole, tmp_path / f"{number}", event)
        calls = len(agent.calls())
        ran = await run_here(hank, cut.root, environ=agent.environ, model=ScriptedModel("Seen."), resume=True)
        assert checkpoints(ran) == [("one", "completed"), ("two", "completed")]
        assert len(agent.calls()) - calls == (event is not made[-1])
        shas = git(Layout(ran.root), "log", "--all", "--format=%H").split()
        told = [e.data["transition"]["data"]["sha"] for e in ran.events if transition(e) == "CheckpointCreated"]
        assert set(told) < set(shas)
        conditions = [e.data["transition"]["data"] for e in ran.events if transition(e) == "RunStarted"][-1]
        source = conditions["startingConditions"]["source"]
        assert source["checkpointSha"] == told[-1 if event is made[-1] else 0]


@pytest.mark.slow
async def test_a_git_that_hangs_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", INIT, *END)
    (agent.folder / "bin" / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (agent.folder / "bin" / "git").chmod(0o755)
    settings = {"hankwatch.toml": "[run]\nstop_budget_s = 3\n"}
    hank = write_hank(tmp_path / "hank", codon(**WATCHED), files=settings)
    async with open_run(RunOptions(hank, execution=tmp_path / "run"), environ=agent.environ) as live:
        live.stream.timers.at(live.stream.now_ms() + 300, lambda _: live.stop())
        began_s = live.clock.monotonic()
        result = await live.carry_out()
        took_s = live.clock.monotonic() - began_s
    assert not result.success
    assert took_s < 3.5
    assert Ran(tmp_path / "run").of("error")[0].data["code"] == "checkpoint-late"
