"""kill -9 of a writing process: what emit has returned is in the journal, and the next open repairs it."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.streams import Bench, info

from hankwatch.stream import Journal, JournalReader, holder, lock_path

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
    printed = emitted_until_killed(path, seed)
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
    repaired = bench.journal is not None and bench.journal.repaired is not None
    assert len(after) == len(written) + 1 + repaired
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
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
