"""A report of a million events: its memory is that of a report of ten thousand."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.stories import Story

from hankwatch.events.codec import encode_line

pytestmark = pytest.mark.benchmark
_MEASURE = """
import resource, sys
from hankwatch.cli.commands import app
try:
    app(args=sys.argv[1:], prog_name="hankwatch", standalone_mode=False)
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def long_run(root: Path, events: int) -> Path:
    """A run of that many events, in which a sentinel fires on every hundredth."""
    story = Story()
    story.begin()
    story.start_codon("build")
    story.load("build", "narrator")
    root = story.write(root)
    with (root / ".hankweave" / "events" / "events.jsonl").open("ab") as file:
        for n in range(events // 100):
            story = Story()
            story.at(1_000 + 700 * n)
            calls = [story.call("build", "Bash", f"line {n} {k}\n" * 20, error=k == 7) for k in range(49)]
            story.fire("build", "narrator", calls[:10], f"note {n}")
            file.write(b"".join(map(encode_line, story.events)))
    return root


def measured(root: Path, out: Path) -> tuple[float, int]:
    """Seconds and peak megabytes of the command."""
    began = time.perf_counter()
    command = [sys.executable, "-c", _MEASURE, "report", str(root), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, int(done.stderr.split()[-1])


def test_the_memory_of_a_report_does_not_grow_with_its_run(tmp_path: Path) -> None:
    small_s, small_mb = measured(long_run(tmp_path / "small", 10_000), tmp_path / "small.html")
    large_s, large_mb = measured(long_run(tmp_path / "large", 1_000_000), tmp_path / "large.html")
    print(f"\n10,000 events: {small_s:.1f} s, {small_mb} MB; 1,000,000 events: {large_s:.1f} s, {large_mb} MB")
    assert large_mb < small_mb + 25
    assert (tmp_path / "large.html").stat().st_size < 3_000_000
