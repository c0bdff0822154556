"""Folders that may not be read, under a whole run: named where it matters, and nothing that is readable is lost."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkpoints import git
from tests.support.hanks import codon
from tests.support.runs import HANKWATCH, Ran, command, environment, write_hank

from hankwatch.processes.tree import marked_pids
from hankwatch.runner.layout import Layout

MORTAL = [sys.executable, str(Path(__file__).parent.parent / "support" / "mortal.py"), *HANKWATCH]
LINES = (
    '{"type":"system","subtype":"init","session_id":"s"}',
    '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}',
)


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass(slots=True)
class Place:
    """Where a hank of the codons ``one`` and ``two`` runs whose agent is a script."""

    folder: Path
    closed: list[Path] = field(default_factory=list)

    @property
    def ran(self) -> Ran:
        return Ran(self.folder / "run")

    @property
    def workspace(self) -> Path:
        return self.ran.root / "agentRoot"

    def hank(self, script: str = "true", *, rig: str | None = None, **fields: Any) -> Path:
        """The agent of each codon carries out ``script``, then says that all went well."""
        (self.folder / "agent.sh").write_text(f"{script}\ncat {self.folder / 'agent.jsonl'}\n")
        (self.folder / "agent.jsonl").write_text("\n".join(LINES) + "\n")
        kept = {"agent": f"exec:sh {self.folder / 'agent.sh'}", "checkpointedFiles": ["**/*.txt"], **fields}
        rigs = {"rigSetup": [{"type": "command", "command": {"run": rig}}]} if rig is not None else {}
        return write_hank(self.folder / "hank", codon("one", **{**rigs, **kept}), codon("two", **kept))

    def close(self, path: Path, mode: int = 0) -> Path:
        path.chmod(mode)
        self.closed.append(path)
        return path

    def run(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ended:
        environ = {**environment(), "HOME": str(self.folder / "home"), **(env or {})}
        with command(*arguments, environ=environ, cwd=self.folder, argv=MORTAL) as child:
            out, err = child.communicate(timeout=15)
        return Ended(child.returncode, out.decode(), err.decode())

    def run_hank(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ended:
        return self.run("run", self.folder / "hank", *arguments, env=env)

    def codes(self, *types: str) -> list[str]:
        return [event.data["code"] for event in self.ran.of(*types) if event.data.get("code")]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for path in made.closed:
        path.chmod(0o700)


BEFORE = "mkdir closed && echo a > closed/a.txt && echo b > b.txt"


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before the agent", "by the agent"])
def test_a_watched_folder_that_is_closed_is_named_and_the_rest_is_kept(place: Place, when: str) -> None:
    closing = "chmod 000 closed"
    by_agent = when == "by the agent"
    place.hank(f"echo c > c.txt; {closing}", rig=BEFORE if by_agent else f"{BEFORE} && {closing}")
    place.closed.append(place.workspace / "closed")
    assert place.run_hank("-e", place.ran.root).code == 0
    assert place.codes("error") == []
    named = [e.data["message"] for e in place.ran.of("info") if e.data.get("code") == "unreadable-folder"]
    assert named == ["Files in closed are not watched: Permission denied"] * 2, "once for each attempt"
    assert "checkpoint-incomplete" in place.codes("info")
    told = {(e.data["path"], e.data["action"]) for e in place.ran.of("file.updated")}
    assert told == {("b.txt", "created"), ("c.txt", "created")} | ({("closed/a.txt", "created")} if by_agent else set())
    branch = f"run-{place.ran.events[0].data['runId']}"
    kept = set(git(Layout(place.ran.root), "ls-tree", "-r", "--name-only", branch).split())
    assert kept == {"b.txt", "c.txt"} | ({"closed/a.txt"} if by_agent else set()), "as it was last read"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "reason"), [("chmod 000 .", "Permission denied"), ("rm -r ../agentRoot", "No such file")]
)
def test_a_workspace_that_its_agent_closed_or_removed_ends_the_run_which_then_resumes(
    place: Place, script: str, reason: str
) -> None:
    place.hank(script)
    place.closed.append(place.workspace)
    assert place.run_hank("-e", place.ran.root).code == 1
    assert [e.data["success"] for e in place.ran.of("codon.completed")] == [True, False]
    assert place.codes("error") == ["checkpoint-failed", "no-working-directory"]
    assert f"{place.workspace}: {reason}" in place.ran.of("error")[-1].data["message"]
    place.hank()
    place.workspace.mkdir(exist_ok=True)
    place.workspace.chmod(0o700)
    assert place.run_hank("-e", place.ran.root, "--resume").code == 0
    assert [e.data["codonId"] for e in place.ran.of("codon.completed")] == ["one", "two", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [False, True])
def test_a_rig_cannot_copy_a_closed_folder_and_says_which(place: Place, allowed: bool) -> None:
    kit = place.folder / "hank" / "kit"
    copy = {"type": "copy", "copy": {"from": "./kit", "to": "kit"}, "allowFailure": allowed}
    (kit / "closed").mkdir(parents=True)
    (kit / "closed" / "tool").write_text("tool")
    (kit / "open").write_text("open")
    place.hank(rigSetup=[copy])
    place.close(kit / "closed")
    assert place.run_hank("-e", place.ran.root).code == (0 if allowed else 1)
    (failed, *_) = place.ran.of("rig.setup.failed")
    assert failed.data["ignored"] is allowed
    assert f"Permission denied: '{kit / 'closed'}'" in place.ran.of("error")[0].data["message"]
    assert not (place.workspace / "kit").exists(), "all or nothing"


@pytest.mark.slow
@pytest.mark.parametrize("which", ["the output directory", "a folder of the workspace"])
def test_outputs_that_a_closed_folder_keeps_back_fail_the_run(place: Place, which: str) -> None:
    out = place.folder / "out"
    out.mkdir()
    closed = which == "a folder of the workspace"
    place.hank(rig=f"{BEFORE}{' && chmod 000 closed' if closed else ''}", outputFiles=[{"copy": ["**/*.txt"]}])
    if closed:
        place.closed.append(place.workspace / "closed")
    else:
        place.close(out, 0o500)
    assert place.run_hank("-e", place.ran.root, "-o", out).code == 1
    (error,) = (e for e in place.ran.of("error") if e.data["code"] == "output-failed")
    assert "Permission denied" in error.data["message"]
    assert sorted(path.name for path in out.rglob("*.txt")) == (["b.txt"] if closed else [])


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_executions_that_cannot_be_made_are_refused_with_where(place: Place, mode: int) -> None:
    place.hank()
    base = place.folder / "base"
    base.mkdir()
    place.close(base, mode)
    done = place.run_hank(env={"HANKWATCH_RUN_EXECUTION_BASE_DIR": str(base)})
    assert (done.code, done.out) == (3, "")
    assert f"error[execution-unusable]: the execution directory {base}/" in done.err
    assert "Permission denied" in done.err
    assert "hint: mend its mode or owner" in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_one_closed_execution_hides_no_other(place: Place) -> None:
    place.hank()
    base = place.folder / "base"
    env = {"HANKWATCH_RUN_EXECUTION_BASE_DIR": str(base)}
    assert place.run_hank(env=env).code == 0
    (open_one,) = base.iterdir()
    shutil.copytree(open_one, base / "1-closed", symlinks=True)
    (base / "lost+found").mkdir(mode=0)
    place.close(base / "1-closed")
    listed = place.run("runs", "--json", env=env)
    assert listed.code == 0
    outcomes = {Path(row["execution"]): row["outcome"] for row in map(json.loads, listed.out.splitlines())}
    assert outcomes == {open_one: "completed", base / "1-closed": "unreadable"}
    assert place.run("tail", "latest", env=env).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["events", "runs", "checkpoints", "sentinels"])
def test_what_the_runtime_owns_is_closed_under_a_run(place: Place, closed: str) -> None:
    place.hank(f"mkdir -p ../.hankweave/{closed}; chmod 000 ../.hankweave/{closed}")
    folder = place.ran.root / ".hankweave" / closed
    place.closed.append(folder)
    done = place.run_hank("-e", place.ran.root)
    folder.chmod(0o700)
    assert "Traceback" not in done.err
    run_id = place.ran.events[0].data["runId"]
    assert marked_pids(run_id) == []
    if closed == "events":
        assert done.code == 3
        assert "error[journal-write-failed]" in done.err
        return
    assert done.code == 0, done.err
    told = {"runs": ["raw-log"], "checkpoints": ["checkpoint-failed"], "sentinels": []}
    assert place.codes("info", "error") == told[closed]
