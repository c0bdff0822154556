"""A journal that may not grow any more, in a real process under a real limit."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.streams import events

from hankwatch.stream import Journal, JournalReader

WRITER = Path(__file__).parent.parent / "support" / "writer.py"


@pytest.mark.slow
@pytest.mark.parametrize("limit_bytes", [1024, 4096, 300_100, 2_000_001])
def test_the_journal_ends_with_its_last_whole_line(tmp_path: Path, limit_bytes: int) -> None:
    path = tmp_path / "events.jsonl"
    child = subprocess.run(
        [sys.executable, str(WRITER), "emit", str(path), "1", str(limit_bytes)],
        capture_output=True,
        check=False,
    )
    assert child.returncode == 3
    assert child.stderr.decode().count("stream failed") == 1
    assert "File too large" in child.stderr.decode()

    content = path.read_bytes()
    assert len(content) <= limit_bytes
    assert content in (b"", content[: content.rfind(b"\n") + 1])
    printed = child.stdout.decode().split()
    written = [event.id for event in JournalReader(path).read()]
    assert written[: len(printed)] == printed

    journal = Journal.open(path)
    assert journal.repaired is None
    journal.append(events("room again"))
    journal.close()
