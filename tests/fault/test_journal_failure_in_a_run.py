"""A journal that fails in mid-run: children ended, exit 3, the reason where people look for it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, sentinel
from tests.support.laws import transition
from tests.support.runs import HANKWATCH, Ran, command, environment, is_alive, run_here, stand_in, until, write_hank

from hankwatch import run_hank
from hankwatch.app import open_run
from hankwatch.core.errors import JournalWriteError
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.processes.tree import marked_pids
from hankwatch.stream.journal import Journal
from hankwatch.stream.reader import JournalReader
from hankwatch.testing import ScriptedModel

INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
TALK = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "x" * 5_000}]}}
LIMIT_BYTES = 20_000
LIMIT = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT_BYTES},) * 2); "
# -B: else the limit would cut compiled modules in two, for everybody.
LIMITED = [sys.executable, "-B", "-c", LIMIT + "from hankwatch.cli.main import main; main()"]


def loud(number: int) -> dict[str, object]:
    return {"type": "assistant", "message": {"id": f"m{number}", "content": [{"type": "text", "text": "x" * 3_000}]}}


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    root, pid_file = tmp_path / "run", tmp_path / "grandchild"
    score: list[Any] = [["children", str(pid_file)], ["line", INIT], *[["line", loud(n)] for n in range(20)], ["hang"]]
    environ = {**stand_in(tmp_path / "agent", *score).environ, "HOME": str(tmp_path)}
    watcher = sentinel(model="builtin/digest", trigger={"type": "event", "on": ["assistant.action"]})
    hank = write_hank(tmp_path / "hank", codon(sentinels=[{"sentinelConfig": watcher}]))
    with command("run", hank, "-e", root, environ=environ, cwd=tmp_path, argv=LIMITED) as child:
        _, complaints = child.communicate(timeout=15)
    assert child.returncode == 3
    assert b"error[journal-write-failed]" in complaints
    assert b"File too large" in complaints
    assert b"Traceback" not in complaints
    assert "File too large" in (root / ".hankweave" / "logs" / "runtime.log").read_text()
    until(lambda: not is_alive(int(pid_file.read_text())))
    run_id = json.loads((root / ".hankweave" / "runtime.lock").read_text())["run"]
    assert marked_pids(run_id) == []
    content = Ran(root).journal.read_bytes()
    assert content.endswith(b"\n")
    assert len(content) <= LIMIT_BYTES
    assert Ran(root).of("codon.completed") == []


WHO_MEETS_IT = {
    "the agent's line": ("codon.started", "_write"),
    "a sentinel": ("assistant.action", "_write"),
    "the sync beside them": ("assistant.action", "_sync"),
}


@pytest.mark.parametrize("who", WHO_MEETS_IT)
async def test_a_failed_journal_comes_out_of_the_run_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    last_written, what = WHO_MEETS_IT[who]
    agent = stand_in(tmp_path / "agent", ["line", INIT], ["line", TALK], ["hang"])
    watcher = sentinel(trigger={"type": "event", "on": ["assistant.action"]})
    settings = {"hankwatch.toml": "[journal]\nsync_interval_s = 0.1\n"}
    hank = write_hank(tmp_path / "hank", codon(sentinels=[{"sentinelConfig": watcher}]), files=settings)
    options = RunOptions(hank, execution=tmp_path / "run")

    def refuse(journal: Journal, *_: object) -> None:
        journal._fail(OSError(28, "No space left on device"))

    def fail_from_here(event: Event) -> None:
        if event.type == last_written:
            monkeypatch.setattr(Journal, "append_lines" if what == "_write" else "sync", refuse)

    async def carry_out() -> None:
        async with open_run(options, environ=agent.environ, model_client=ScriptedModel()) as live:
            live.stream.subscribe(fail_from_here, name="test")
            await live.carry_out()

    with pytest.raises(JournalWriteError, match="No space left"):
        await carry_out()
    (started,) = [event for event in Ran(tmp_path / "run").events if transition(event) == "RunStarted"]
    assert marked_pids(started.data["runId"]) == []
    assert "No space left" in (tmp_path / "run" / ".hankweave" / "logs" / "runtime.log").read_text()
    assert Ran(tmp_path / "run").of("codon.completed") == []


async def test_an_unwritable_raw_log_costs_no_event(tmp_path: Path) -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
    agent = stand_in(tmp_path / "agent", ["line", INIT], ["line", TALK], ["line", result], ["until_eof"])
    hank = write_hank(tmp_path / "hank", codon())
    (tmp_path / "run" / ".hankweave").mkdir(parents=True)
    (tmp_path / "run" / ".hankweave" / "runs").write_text("in the way")
    ran = await run_here(hank, tmp_path / "run", environ=agent.environ)
    assert ran.completed()["success"] is True
    assert [event.data["code"] for event in ran.of("info") if "code" in event.data] == ["raw-log"]


def test_a_place_that_cannot_be_written_is_refused_with_its_reason(tmp_path: Path) -> None:
    hank = write_hank(tmp_path / "hank", codon())
    (tmp_path / "file").write_text("")
    program = stand_in(tmp_path / "agent")
    child = subprocess.run(
        [*HANKWATCH, "run", str(hank), "-e", str(tmp_path / "file" / "run")],
        env=program.environ,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert child.returncode == 3
    assert b"error[execution-unusable]" in child.stderr


async def test_run_hank_gives_the_result_of_a_whole_run(tmp_path: Path, fixtures: Path) -> None:
    result = await run_hank(
        fixtures / "sentinel-sweep",
        execution=tmp_path / "run",
        environ=environment(),
        model_client=ScriptedModel("All swept."),
    )
    assert result.success
    assert [codon.status for codon in result.record.codons] == ["completed", "completed"]
    (observer,) = result.sentinels
    assert "All swept." in (result.execution / observer.report).read_text()
    reader = JournalReader(tmp_path / "run" / ".hankweave" / "events" / "events.jsonl")
    assert reader.last(1)[0].type == "state.transition"


AGENT_THAT_DELETES = """
import json, os, shutil, sys, time
def say(value): print(json.dumps(value), flush=True)
say({"type": "system", "subtype": "init", "session_id": "s"})
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
shutil.rmtree(sys.argv[1]) if os.path.isdir(sys.argv[1]) else os.unlink(sys.argv[1])
say({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "gone"}]}})
say({"type": "result", "subtype": "success", "is_error": False, "result": "", "session_id": "s", "total_cost_usd": 0})
"""


@pytest.mark.slow
@pytest.mark.parametrize("gone", [".hankweave/events/events.jsonl", ".hankweave/events", ".hankweave"])
@pytest.mark.parametrize("interval", ["1.0", "0", '"never"'])
def test_a_run_whose_journal_was_deleted_by_its_agent_has_not_succeeded(
    tmp_path: Path, gone: str, interval: str
) -> None:
    root, script = tmp_path / "run", tmp_path / "agent.py"
    script.write_text(AGENT_THAT_DELETES)
    settings = {"hankwatch.toml": f"[journal]\nsync_interval_s = {interval}\n"}
    agent = f"exec:{sys.executable} {script} {root / gone}"
    hank = write_hank(tmp_path / "hank", codon(agent=agent), files=settings)
    with command("run", hank, "-e", root, environ=environment(), cwd=tmp_path) as child:
        _, complaints = child.communicate(timeout=15)
    assert child.returncode == 3
    assert b"error[journal-write-failed]" in complaints
    assert b"it was deleted or replaced while in use" in complaints
    assert b"Traceback" not in complaints
