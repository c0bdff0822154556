"""Several processes want one journal: all but one are refused, and no line is ever damaged."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

from hankwatch.stream import JournalReader, holder, lock_path

WRITER = Path(__file__).parent.parent / "support" / "writer.py"


def start(role: str, path: Path, name: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, str(WRITER), role, str(path), name]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_of_six_competing_writers_one_wins_and_the_others_learn_who(tmp_path: Path) -> None:
    path = tmp_path / ".hankweave" / "events" / "events.jsonl"
    with ExitStack() as stack, ThreadPoolExecutor(6) as pool:
        children = [stack.enter_context(start("compete", path, str(n))) for n in range(6)]
        # The five losers end by themselves; the winner waits for its stdin.
        ends = {pool.submit(child.wait, 15): child for child in children}
        losers = [ends[end] for end in islice(as_completed(ends), 5)]
        [winner] = [child for child in children if child not in losers]
        held_by = holder(lock_path(path))
        refusals = [child.communicate()[1].decode() for child in losers]
        winner.communicate()

    assert held_by is not None
    assert held_by.pid == winner.pid
    assert [child.returncode for child in losers] == [3] * 5
    assert all(f"held by process {winner.pid} (run writer, since " in refusal for refusal in refusals)
    assert winner.returncode == 0
    reader = JournalReader(path)
    assert len(list(reader.read())) == 60
    assert reader.bad_lines == 0


@pytest.mark.slow
def test_six_writers_one_after_another_leave_every_event_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with ExitStack() as stack:
        for n in range(6):
            stack.enter_context(start("queue", path, str(n)))
    reader = JournalReader(path)
    codes = [event.data["code"] for event in reader.read()]
    assert reader.bad_lines == 0
    assert sorted(codes) == sorted(f"{name}-{count}" for name in range(6) for count in range(60))
    # Each writer's events stand together and in order: nobody wrote in between.
    assert [codes[i : i + 60] for i in range(0, 360, 60)] == [
        [f"{codes[i].split('-')[0]}-{count}" for count in range(60)] for i in range(0, 360, 60)
    ]
