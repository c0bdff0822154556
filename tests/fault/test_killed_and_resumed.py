"""kill -9 of a run at any moment, again and again, then --resume: nothing lost, nothing doubled, no orphan."""

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, loop, sentinel
from tests.support.laws import transition
from tests.support.runs import Ran, command, is_alive, stand_in, until, write_hank

from hankwatch.processes.tree import marked_pids
from hankwatch.sentinels.reports import rebuild

INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
CODONS = ["a", "b#0", "c#0", "b#1", "c#1"]
MOST_EVENTS = 70
"""Between two kills; a whole run has about 150."""
STARTS_UP = 0.1
"""Share of kills while the process begins, before it writes or in its first steps."""
KILLS = 2


def spoke(number: int) -> list[Any]:
    content = [{"type": "text", "text": f"step {number}"}]
    return ["line", {"type": "assistant", "message": {"id": f"m{number}", "content": content}}]


def watched(codon_id: str, **fields: Any) -> dict[str, Any]:
    types = ["assistant.action", "codon.completed"]
    watcher = sentinel(model="builtin/digest", trigger={"type": "event", "on": types})
    return codon(codon_id, sentinels=[{"sentinelConfig": watcher}], **fields)


def check_kills(tmp_path: Path, seed: int) -> None:
    chance, root, pids = random.Random(seed), tmp_path / "run", tmp_path / "grandchild"
    talk = [step for number in range(4) for step in (spoke(number), ["sleep", 0.03])]
    agent = stand_in(
        tmp_path / "agent", ["quiet_children", str(pids)], ["line", INIT], *talk, ["line", RESULT], ["until_eof"]
    )
    hank = write_hank(tmp_path / "hank", watched("a"), loop(watched("b"), codon("c")))
    environ, left, before = {**agent.environ, "HOME": str(tmp_path)}, [], b""
    resume = ("run", hank, "-e", root, "--resume")
    for _ in range(KILLS):
        pids.unlink(missing_ok=True)
        with command(*resume, environ=environ, cwd=tmp_path) as child:
            if chance.random() < STARTS_UP:
                time.sleep(chance.uniform(0.05, 0.6))
            else:
                wanted = before.count(b"\n") + chance.randrange(MOST_EVENTS)
                until(lambda wanted=wanted: child.poll() is not None or lines(root) >= wanted)  # type: ignore[misc]
                time.sleep(chance.uniform(0, 0.02))
            assert child.poll() is None, "it is killed at work"
            child.kill()
            child.wait()
        left += [int(pids.read_text() or 0)] if pids.exists() else []
        written = Ran(root).journal.read_bytes() if Ran(root).journal.exists() else b""
        assert written.startswith(before), "what was written stays"
        before = written[: written.rfind(b"\n") + 1]
    pids.unlink(missing_ok=True)
    with command(*resume, environ=environ, cwd=tmp_path) as child:
        _, complaints = child.communicate(timeout=40)
        assert child.returncode == 0 or b"nothing to resume" in complaints, complaints.decode()
    assert Ran(root).journal.read_bytes().startswith(before)
    check_whole(Ran(root), left)


def lines(root: Path) -> int:
    """How many events the journal has by now."""
    journal = Ran(root).journal
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def check_whole(ran: Ran, left: list[int]) -> None:
    events = ran.events  # whole lines, law-abiding
    assert transition(events[-1]) == "RunCompleted"
    completed = [e.data["codonId"] for e in events if e.type == "codon.completed"]
    assert completed == CODONS, "each codon completed once, in order"
    snapshots = [e for e in events if e.type == "state.snapshot"]
    assert len(snapshots) == len(CODONS)
    assert [c["codonId"] for c in snapshots[-1].data["completedCodons"]] == CODONS[::-1]
    assert [e.data["iteration"] for e in events if e.type == "loop.iteration.completed"] == [0, 1]
    kinds = [transition(e) for e in events]
    assert kinds.count("RunStarted") == sum(k in {"RunCompleted", "RunFailed", "RunCrashed"} for k in kinds)
    loads = [
        Counter(e.data["codonId"] for e in events if e.type == f"sentinel.{kind}") for kind in ("loaded", "unloaded")
    ]
    assert loads[0] == loads[1]
    reports = {path: path.read_bytes() for path in ran.root.glob(".hankweave/sentinels/outputs/*/*")}
    rebuild(events, ran.root)
    assert reports == {path: path.read_bytes() for path in reports}, "reports hold what the journal says, once"
    assert not any(is_alive(pid) for pid in left)
    for event in events:
        if transition(event) == "RunStarted":
            assert marked_pids(event.data["runId"]) == []


@pytest.mark.slow
@pytest.mark.timeout(60)  # three processes, one after the other
@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_at_six_points_goes_on_when_resumed(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(100, 200))
def test_a_run_killed_at_two_hundred_points_goes_on_when_resumed(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path, seed)
