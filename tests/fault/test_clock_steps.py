"""A wall clock that is set while a run is under way: its time line goes on, nothing comes due early, late or never."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, loop, sentinel
from tests.support.laws import moved_to, transition
from tests.support.runs import Ran, command, stand_in, write_hank
from tests.support.stepped_run import ARGV

HOUR_S, TEN_YEARS_S = 3_600, 10 * 365 * 86_400
STEPS = [-TEN_YEARS_S, -5 * HOUR_S, 5 * HOUR_S, TEN_YEARS_S]
INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
ENDS: Sequence[Any] = [
    ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}],
    ["until_eof"],
]
MARGIN_MS = 1_000
"""For two busy cores."""


def spoke(number: int) -> list[Any]:
    content = [{"type": "text", "text": f"step {number}"}, {"type": "tool_use", "id": f"t{number}", "name": "Bash"}]
    return ["line", {"type": "assistant", "message": {"id": f"m{number}", "content": content}}]


def answered(number: int) -> list[Any]:
    content = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}]
    return ["line", {"type": "user", "message": {"role": "user", "content": content}}]


@dataclass(frozen=True, slots=True)
class Stepped:
    """A run whose agent sets the clock, and what real time it took."""

    ran: Ran
    code: int
    took_ms: float

    def durations(self) -> Iterator[int]:
        """All that its events say about how long something took, in milliseconds."""
        names = ("duration", "durationMs", "executionTimeMs", "totalTime")
        yield from (event.data[name] for event in self.ran.events for name in names if name in event.data)

    def check_time_line(self) -> None:
        """Stamps are as far apart as real time went by."""
        stamps = [event.at_ms for event in self.ran.events]  # law-abiding: they never go back
        assert stamps[-1] - stamps[0] <= self.took_ms + MARGIN_MS
        assert all(0 <= duration <= self.took_ms + MARGIN_MS for duration in self.durations())


class Place:
    """Where one hank runs, under a clock that its agent sets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ran = folder, Ran(folder / "run")
        self.step = folder / "step"

    def set_clock(self, step_s: int) -> list[Any]:
        """A step of the agent's score."""
        return ["file", str(self.step), str(step_s)]

    def hank(self, *items: dict[str, Any], settings: str = "") -> Path:
        return write_hank(self.folder / "hank", *items, files={"hankwatch.toml": settings})

    def run(self, hank: Path, score: Sequence[Any], *arguments: str) -> Stepped:
        agent = stand_in(self.folder / f"agent{time.monotonic_ns()}", *score)
        environ = {**agent.environ, "HOME": str(self.folder), "WALL_STEP": str(self.step)}
        began = time.monotonic()
        with command("run", hank, "-e", self.ran.root, *arguments, environ=environ, cwd=hank, argv=ARGV) as child:
            _, complaints = child.communicate(timeout=15)
        assert b"Traceback" not in complaints
        return Stepped(self.ran, child.returncode, (time.monotonic() - began) * 1000)


def watched(execution: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A codon whose sentinel hears what its agent says."""
    observer = sentinel(
        model="builtin/digest", trigger={"type": "event", "on": ["assistant.action"]}, execution=execution
    )
    return codon("one", sentinels=[{"sentinelConfig": observer}], **fields)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("step_s", STEPS)
def test_nothing_comes_due_because_the_clock_was_set(place: Place, step_s: int) -> None:
    """An idle limit, a budget of time and a debounce, each longer than the run, hold their peace."""
    score: list[Any] = [INIT, spoke(1), place.set_clock(step_s)]
    for number in range(2, 8):
        score += [spoke(number), ["sleep", 0.03], answered(number), place.set_clock(step_s if number % 2 else 0)]
    hank = place.hank(
        watched({"strategy": "debounce", "milliseconds": 30_000}, shimIdleTimeout=60, budget={"maxTimeSeconds": 60}),
        loop(codon("two")),
    )
    stepped = place.run(hank, [*score, *ENDS], "--max-time", "120")
    assert stepped.code == 0
    stepped.check_time_line()
    ends = [event.data for event in place.ran.of("codon.completed")]
    assert [(end["success"], end.get("budgetExceeded")) for end in ends] == [(True, None)] * 3
    (fired,) = place.ran.of("sentinel.triggered")
    assert fired.data["eventCount"] == 14, "once, at the codon's end, with all of them"


@pytest.mark.slow
@pytest.mark.parametrize("step_s", [STEPS[0], STEPS[-1]])
def test_what_is_due_comes_due_although_the_clock_was_set(place: Place, step_s: int) -> None:
    """A debounce of 0.1 s and an idle limit of 1 s, both begun before."""
    hank = place.hank(watched({"strategy": "debounce", "milliseconds": 100}, shimIdleTimeout=1))
    stepped = place.run(hank, [INIT, spoke(1), place.set_clock(step_s), ["hang"]])
    assert stepped.code == 1
    stepped.check_time_line()
    end = place.ran.completed()
    assert end["failureReason"]["message"] == "no output for 1 s"
    assert end["duration"] >= 1_000
    events = place.ran.events
    kinds = [moved_to(event) or event.type for event in events]
    heard, fired, ended = map(kinds.index, ("assistant.action", "sentinel.triggered", "completing-sentinels"))
    assert heard < fired < ended
    assert events[fired].at_ms - events[heard].at_ms >= 100


@pytest.mark.slow
@pytest.mark.parametrize("step_s", [STEPS[0], STEPS[-1]])
def test_a_run_that_is_resumed_under_another_clock_goes_on_behind_its_last_stamp(place: Place, step_s: int) -> None:
    hank = place.hank(watched({"strategy": "debounce", "milliseconds": 100}, shimIdleTimeout=5), codon("two"))
    failed = place.run(hank, [INIT, spoke(1), ["exit", 1]])
    assert failed.code == 1
    before = place.ran.events
    place.step.write_text(str(step_s))
    resumed = place.run(hank, [INIT, spoke(1), ["sleep", 0.3], *ENDS], "--resume")
    assert resumed.code == 0
    events = place.ran.events  # law-abiding
    after = events[len(before) :]
    jump_ms = after[0].at_ms - before[-1].at_ms
    assert abs(jump_ms - max(0, step_s) * 1000) < resumed.took_ms + 10 * MARGIN_MS
    assert after[-1].at_ms - after[0].at_ms < resumed.took_ms
    assert [e.data["success"] for e in events if e.type == "codon.completed"] == [False, True, True]
    assert all(e.data["duration"] <= resumed.took_ms for e in after if e.type == "codon.completed")
    assert [transition(e) for e in events if transition(e) in {"RunStarted", "RunCompleted"}][-1] == "RunCompleted"
    assert all(a.id < b.id for a, b in pairwise(after)), "ids grow with their stamps"
