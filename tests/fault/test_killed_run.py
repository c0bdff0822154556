"""kill -9 of a whole run: its journal stays whole, and the next run there ends what it left behind."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, sentinel
from tests.support.laws import transition
from tests.support.runs import Ran, command, is_alive, journaled, stand_in, until, write_hank

from hankwatch.processes.tree import marked_pids
from hankwatch.stream.reader import JournalReader

INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
LONGEST_S = 1.6
"""About as long as a run takes from the command's start to its end."""


def spoke(number: int) -> dict[str, object]:
    content = [{"type": "text", "text": f"step {number} " + "x" * 2_000}]
    return {"type": "assistant", "message": {"id": f"m{number}", "content": content}}


def check_killed_run(tmp_path: Path, seed: int, *, after_s: float | None = None) -> None:
    pid_file, root = tmp_path / "grandchild", tmp_path / "run"
    score: list[Any] = [["children", str(pid_file)], ["line", INIT]]
    for number in range(20):
        score += [["line", spoke(number)], ["sleep", 0.02]]
    agent = stand_in(tmp_path / "agent", *score, ["line", RESULT], ["until_eof"])
    environ = {**agent.environ, "HOME": str(tmp_path)}
    watcher = sentinel(model="builtin/digest", trigger={"type": "event", "on": ["assistant.action"]})
    hank = write_hank(tmp_path / "hank", codon(sentinels=[{"sentinelConfig": watcher}]))

    delay_s = random.Random(seed).uniform(0.3, LONGEST_S) if after_s is None else after_s
    with command("run", hank, "-e", root, environ=environ, cwd=tmp_path) as child:
        if after_s is not None:
            until(lambda: journaled(root, "assistant.action"))
        time.sleep(delay_s)
        child.kill()
        child.wait()
    before = (
        [event.id for event in JournalReader(root / ".hankweave/events/events.jsonl").read()] if root.exists() else []
    )
    left = [int(pid_file.read_text() or 0)] if pid_file.exists() else []
    lock = root / ".hankweave" / "runtime.lock"
    crashed = json.loads(lock.read_text())["run"] if lock.exists() and lock.read_text() else None

    with command("run", hank, "-e", root, "--start-new", environ=environ, cwd=tmp_path) as child:
        shown, complaints = child.communicate(timeout=15)
        assert child.returncode == 0, (shown, complaints)
    events = Ran(root).events  # whole lines, law-abiding
    assert [event.id for event in events][: len(before)] == before
    assert transition(events[-1]) == "RunCompleted"
    assert crashed is None or marked_pids(crashed) == []
    assert not any(is_alive(pid) for pid in left)
    kinds = [transition(event) for event in events]
    ends = sum(kind in {"RunCompleted", "RunFailed", "RunCrashed"} for kind in kinds)
    assert kinds.count("RunStarted") == ends, "every run has an end"


@pytest.mark.slow
def test_a_run_killed_in_the_middle_is_marked_and_its_orphans_are_ended(tmp_path: Path) -> None:
    check_killed_run(tmp_path, 0, after_s=0.1)
    (crashed,) = [event for event in Ran(tmp_path / "run").events if transition(event) == "RunCrashed"]
    assert crashed.data["transition"]["data"]["lastCodonStatus"] == "running"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_run_killed_anywhere_leaves_a_whole_journal_and_no_orphans(tmp_path: Path, seed: int) -> None:
    check_killed_run(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 150))
def test_a_run_killed_at_fifty_points_leaves_a_whole_journal_and_no_orphans(tmp_path: Path, seed: int) -> None:
    check_killed_run(tmp_path, seed)
