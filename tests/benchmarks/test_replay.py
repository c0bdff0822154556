"""What a replay costs: events a second under 0, 1 and 50 sentinels, and memory that does not grow with the recording.

Each measurement is a process of its own, so that its peak is its own. CPU time is counted, since on a busy machine
the rest measures its neighbours.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from hankwatch.events.envelope import IdSource, format_stamp

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1_200)]

ROOT = Path(__file__).parents[2]
START_MS = 1_767_225_600_000
LEAST_EVENTS_PER_S = 5_000
"""Of one core, also a slow one."""


def write_recording(path: Path, count: int, *, foreign_ids: bool = False) -> Path:
    """A journal of that many events, as an agent at work would leave; one tool result in 1,000 is an error."""
    ids = IdSource(seed=1)
    with path.open("wb") as file:
        for number in range(count):
            at_ms = START_MS + 20 * number
            event_id = f"e{number}" if foreign_ids else ids.next(at_ms)
            kind, data = _said(number)
            line = {"id": event_id, "timestamp": format_stamp(at_ms), "type": kind, "data": data}
            file.write(orjson.dumps(line) + b"\n")
    return path


def _said(number: int) -> tuple[str, dict[str, Any]]:
    call = {"codonId": "c", "toolUseId": f"t{number}", "toolName": "Bash"}
    match number % 4:
        case 0:
            return "assistant.action", call | {"action": "tool_use", "toolInput": {"command": "make test"}}
        case 1:
            outcome = {"executionTimeMs": 5, "isError": number % 4_000 == 1}
            return "tool.result", call | outcome | {"result": "ok " * 40, "truncated": False, "originalLength": 120}
        case 2:
            return "token.usage", {"codonId": "c", "inputTokens": 1, "outputTokens": 2, "totalCost": 0.001}
        case _:
            return "info", {"message": f"step {number}"}


def measured(path: Path, sentinels: int) -> dict[str, float]:
    """What one replay took."""
    script, out = ROOT / "tests" / "support" / "replay_cost.py", path.with_name(f"{path.name}-{sentinels}")
    command = [sys.executable, str(script), str(path), str(out), str(sentinels)]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True, text=True)
    cost: dict[str, float] = json.loads(done.stdout)
    rate = cost["events"] / cost["cpu_s"]
    print(f"{path.name}, {sentinels} sentinels: {rate:,.0f} events/s, {cost['peak_kb'] / 1024:.0f} MB, {cost}")
    return cost


@pytest.mark.parametrize("sentinels", [0, 1, 50])
def test_events_pass_at_a_rate_that_hardly_depends_on_the_sentinels(tmp_path: Path, sentinels: int) -> None:
    cost = measured(write_recording(tmp_path / "journal", 100_000), sentinels)
    assert cost["fires"] == 25 * sentinels
    assert cost["events"] / cost["cpu_s"] > LEAST_EVENTS_PER_S


@pytest.mark.parametrize("foreign_ids", [False, True], ids=["our-ids", "foreign-ids"])
def test_memory_does_not_grow_with_the_recording(tmp_path: Path, foreign_ids: bool) -> None:
    few, more, most = (
        measured(write_recording(tmp_path / str(count), count, foreign_ids=foreign_ids), 50)
        for count in (10_000, 100_000, 1_000_000)
    )
    assert more["peak_kb"] <= 1.2 * few["peak_kb"]
    assert most["peak_kb"] <= 1.2 * few["peak_kb"]
