"""kill -9 of a writing process: what emit has returned is in the journal, and the next open repairs it."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.streams import Bench, info

from hankwatch.stream import Journal, JournalReader, Repair, holder, lock_path

WRITER = Path(__file__).parent.parent / "support" / "writer.py"
MOST_IDS = 300


def emitted_until_killed(path: Path, seed: int) -> list[str]:
    """The ids a writer has printed when it was killed at a point that ``seed`` chooses."""
    chance = random.Random(seed)
    argv = [sys.executable, str(WRITER), "emit", str(path), str(seed)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        printed = [child.stdout.readline() for _ in range(chance.randint(1, MOST_IDS))]
        for _ in range(chance.randrange(100_000)):  # a moment anywhere inside its next steps
            pass
        child.kill()
        printed += child.stdout.read().splitlines(keepends=True)
    return [line.decode().strip() for line in printed if line.endswith(b"\n")]


def check_killed_writer(path: Path, seed: int) -> None:
    check_journal(path, emitted_until_killed(path, seed))


def check_journal(path: Path, printed: list[str]) -> Repair | None:
    """All that was printed is there, and the next open leaves a journal without bad lines."""
    assert holder(lock_path(path)) is None
    written = [event.id for event in JournalReader(path).read()]
    assert written[: len(printed)] == printed
    assert len(written) - len(printed) <= 8  # at most the batch it was killed in

    bench = Bench(Journal.open(path))
    bench.stream.emit(info("the next run"))
    bench.stream.close()
    reader = JournalReader(path)
    after = [event.id for event in reader.read()]
    assert after[: len(written)] == written
    assert reader.bad_lines == 0
    assert bench.journal is not None
    assert len(after) == len(written) + 1 + (bench.journal.repaired is not None)
    return bench.journal.repaired


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_killed_writer_loses_nothing_it_has_returned(tmp_path: Path, seed: int) -> None:
    check_killed_writer(tmp_path / "events.jsonl", seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 150))
def test_a_writer_killed_at_fifty_points_loses_nothing(tmp_path: Path, seed: int) -> None:
    check_killed_writer(tmp_path / "events.jsonl", seed)


@pytest.mark.slow
def test_a_journal_survives_one_kill_after_another(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    printed = [id_ for seed in range(200, 205) for id_ in emitted_until_killed(path, seed)]
    reader = JournalReader(path)
    written = {event.id for event in reader.read()}
    assert set(printed) <= written
    assert reader.bad_lines == 0


def killed_inside_a_write(path: Path) -> list[str]:
    """The ids a writer has printed when it was killed while its 50 MB event was growing the file."""
    argv = [sys.executable, str(WRITER), "huge", str(path), "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        printed = [child.stdout.readline().decode().strip() for _ in range(3)]
        size_bytes = path.stat().st_size
        while path.stat().st_size == size_bytes:
            assert child.poll() is None
        child.kill()
    return printed


@pytest.mark.slow
def test_a_writer_killed_inside_a_write_leaves_a_tail_that_is_moved_aside(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / str(attempt) / "events.jsonl"
        repaired = check_journal(path, killed_inside_a_write(path))
        if repaired is not None:
            assert repaired.action == "moved"
            assert repaired.side_file is not None
            assert path.with_name(repaired.side_file).stat().st_size == repaired.size_bytes
            return
    pytest.skip("this kernel finished every write it was killed in")
