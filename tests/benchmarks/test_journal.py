"""What the journal costs beyond encoding and writing, and what an emit costs from end to end.

Each ratio is measured side by side: both ways take turns in short rounds within one run, from the same
ready events, and the best round of each counts, because on a busy machine the others measure its neighbours.
Files stay small, so that the kernel never makes one of the ways wait for the disk.
"""

import gc
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from hankwatch.core.clock import StreamTime, SystemClock, Timers
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event, IdSource, format_stamp
from hankwatch.events.run import Info
from hankwatch.stream import EventStream, Journal

pytestmark = pytest.mark.benchmark

AT_MS = 1_800_000_000_000
ROUNDS = 60
EVENTS_PER_ROUND = 2048
BATCH = 64


def ready_events() -> list[Event]:
    """Events of about 550 bytes a line, the size of a real tool call."""
    ids = IdSource(seed=1)
    return [
        Event(
            ids.next(AT_MS),
            format_stamp(AT_MS),
            "assistant.action",
            {
                "codonId": "write-tests",
                "action": "tool_use",
                "toolName": "Bash",
                "toolUseId": f"toolu_{number:024d}",
                "toolInput": {
                    "command": "python -m pytest tests/unit -q --maxfail=1 " + "x" * 160,
                    "timeout": 120_000,
                    "description": "Run the unit tests and stop at the first failure",
                },
                "isPartial": False,
                "order": number,
            },
            AT_MS,
        )
        for number in range(EVENTS_PER_ROUND)
    ]


class Way:
    """One way to spend a round; what it writes to is emptied between rounds."""

    def __init__(self, path: Path, spend: Callable[[], None]) -> None:
        self.path = path
        self.spend = spend
        self.best_s = math.inf

    def round(self) -> None:
        os.truncate(self.path, 0)
        began = time.perf_counter()
        self.spend()
        self.best_s = min(self.best_s, time.perf_counter() - began)

    @property
    def per_second(self) -> float:
        return EVENTS_PER_ROUND / self.best_s


def measure(*ways: Way) -> None:
    """Let the ways take turns, in both orders."""
    gc.collect()
    gc.disable()
    try:
        for number in range(ROUNDS):
            for way in ways if number % 2 else reversed(ways):
                way.round()
    finally:
        gc.enable()


def report(what: str, ours: Way, baseline: str, theirs: Way) -> float:
    ratio = ours.per_second / theirs.per_second
    print(f"\n{what}: {ours.per_second:,.0f}/s; {baseline}: {theirs.per_second:,.0f}/s; ratio {ratio:.2f}")
    return ratio


def dump(event: Event) -> bytes:
    return orjson.dumps(event.envelope(), option=orjson.OPT_APPEND_NEWLINE)


def test_batches_cost_at_most_twice_dumping_and_buffered_writing(tmp_path: Path) -> None:
    events = ready_events()
    batches = [events[i : i + BATCH] for i in range(0, len(events), BATCH)]
    journal = Journal.open(tmp_path / "events.jsonl")

    def append() -> None:
        for batch in batches:
            journal.append(batch)

    with (tmp_path / "baseline.jsonl").open("ab") as file:

        def buffered() -> None:
            for event in events:
                file.write(dump(event))
            file.flush()

        ours, theirs = Way(journal.path, append), Way(tmp_path / "baseline.jsonl", buffered)
        measure(ours, theirs)
    journal.close()
    assert report(f"append, batches of {BATCH}", ours, "dumps + buffered write", theirs) >= 0.5


def test_single_appends_cost_little_more_than_dumping_and_writing(tmp_path: Path) -> None:
    events = ready_events()
    journal = Journal.open(tmp_path / "events.jsonl")
    fd = os.open(tmp_path / "baseline.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append() -> None:
        for event in events:
            journal.append((event,))

    def write() -> None:
        for event in events:
            os.write(fd, dump(event))

    ours, theirs = Way(journal.path, append), Way(tmp_path / "baseline.jsonl", write)
    measure(ours, theirs)
    os.close(fd)
    journal.close()
    assert report("append, single", ours, "dumps + os.write", theirs) >= 0.7


def test_emit_from_end_to_end(tmp_path: Path) -> None:
    def emitting(listeners: int) -> Way:
        path = tmp_path / f"{listeners}.jsonl"
        stream = EventStream(
            Journal.open(path),
            time=StreamTime(SystemClock()),
            timers=Timers(),
            redactor=Redactor({"API_KEY": "a-secret-of-this-machine"}),
            ids=IdSource(),
            on_failure=lambda _error: None,
        )
        for number in range(listeners):
            stream.subscribe(lambda _event: None, name=f"listener {number}")

        def emit() -> None:
            for number in range(EVENTS_PER_ROUND):
                stream.emit(Info(message="x" * 400, code="progress", details={"number": number}))

        return Way(path, emit)

    one, hundred = emitting(1), emitting(100)
    measure(one, hundred)
    report("emit end to end, 100 listeners", hundred, "1 listener", one)
    print(f"per event: {1e6 / one.per_second:.1f} us with 1 listener, {1e6 / hundred.per_second:.1f} us with 100")
