"""The four strategies over stream time."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from hankwatch.events.envelope import Event
from hankwatch.sentinels import strategies
from hankwatch.sentinels.strategies import Batch, Cause, Execution, Strategy, event_bytes, make_strategy
from hankwatch.testing import make_event

EXECUTION: TypeAdapter[Execution] = TypeAdapter(Execution)


def strategy(name: str, **options: Any) -> Strategy:
    return make_strategy(EXECUTION.validate_python({"strategy": name, **options}))


def events(count: int = 1, at: int = 0, size: int = 0) -> list[Event]:
    made = [make_event("info", at, message="x") for _ in range(count)]
    for event in made:
        event.size_bytes = size
    return made


def shape(batches: list[Batch]) -> list[tuple[str, int, int]]:
    return [(batch.cause.value, len(batch.events), batch.at_ms) for batch in batches]


def run(machine: Strategy, *matches_at: int, drain: int | None = None) -> list[tuple[str, int, int]]:
    """Matches of one event each, timers first, as the stream does it."""
    batches: list[Batch] = []
    for at in matches_at:
        batches += machine.on_due(at)
        batches += machine.on_match(events(at=at), at)
    if drain is not None:
        batches += machine.drain(drain)
    return shape(batches)


def test_immediate_fires_each_match_whole() -> None:
    machine = strategy("immediate")
    assert shape(machine.on_match(events(3), 5)) == [("match", 3, 5)]
    assert machine.next_due_ms() is None
    assert machine.drain(9) == []


def test_debounce_fires_after_the_pause_with_all_matches() -> None:
    machine = strategy("debounce", milliseconds=100)
    assert run(machine, 0, 50, 120) == []
    assert machine.next_due_ms() == 220
    assert machine.on_due(219) == []
    assert shape(machine.on_due(500)) == [("quiet", 3, 220)]
    assert machine.next_due_ms() is None


def test_a_timer_due_at_t_fires_before_the_match_at_t() -> None:
    assert run(strategy("debounce", milliseconds=100), 0, 100, drain=100) == [("quiet", 1, 100), ("drain", 1, 100)]


def test_a_steady_stream_cannot_starve_a_debounce() -> None:
    every_second = range(0, 600_000, 1_000)
    fired = run(strategy("debounce", milliseconds=5_000), *every_second, drain=600_000)
    assert [cause for cause, _, _ in fired] == ["max_wait"] * 12
    # Ten pauses after the first match of each batch: 50 matches, and the one at that instant begins the next.
    assert fired[0] == ("max_wait", 50, 50_000)
    assert sum(count for _, count, _ in fired) == 600


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"milliseconds": 100}, 1_000),
        ({"milliseconds": 200_000}, 300_000),
        ({"milliseconds": 100, "maxWaitMilliseconds": None}, None),
        ({"milliseconds": 100, "maxWaitMilliseconds": 7}, 7),
    ],
)
def test_the_longest_wait_is_ten_pauses_unless_said_otherwise(options: dict[str, Any], expected: int | None) -> None:
    execution = EXECUTION.validate_python({"strategy": "debounce", **options})
    assert isinstance(execution, strategies.DebounceExecution)
    assert execution.max_wait_ms == expected


def test_a_longest_wait_equal_to_the_pause_loses_nothing() -> None:
    machine = strategy("debounce", milliseconds=100, maxWaitMilliseconds=100)
    assert run(machine, 0, 60, 100, 250, drain=260) == [("max_wait", 2, 100), ("quiet", 1, 200), ("drain", 1, 260)]


def test_without_a_longest_wait_only_a_pause_fires() -> None:
    machine = strategy("debounce", milliseconds=100, maxWaitMilliseconds=None)
    assert run(machine, *range(0, 10_000, 99)) == []


def test_count_fires_at_the_threshold_and_never_splits_a_match() -> None:
    machine = strategy("count", threshold=2)
    assert machine.on_match(events(3), 1) == []
    assert shape(machine.on_match(events(4), 2)) == [("threshold", 7, 2)]
    assert run(strategy("count", threshold=1), 5, 6) == [("threshold", 1, 5), ("threshold", 1, 6)]


def test_the_rest_of_a_count_is_drained() -> None:
    assert run(strategy("count", threshold=10), *range(7), drain=30) == [("drain", 7, 30)]


def test_windows_lie_on_a_grid_that_begins_with_the_first_match() -> None:
    machine = strategy("timeWindow", milliseconds=100)
    assert run(machine, 1_007, 1_106, 1_107, 1_950) == [("window", 2, 1_107), ("window", 1, 1_207)]
    assert machine.next_due_ms() == 2_007


def test_empty_windows_have_no_timer() -> None:
    machine = strategy("timeWindow", milliseconds=100)
    assert machine.next_due_ms() is None
    run(machine, 0)
    machine.on_due(100)
    assert machine.next_due_ms() is None
    assert run(machine, 86_400_050) == []
    assert machine.next_due_ms() == 86_400_100


def test_the_grid_stays_after_a_drain() -> None:
    machine = strategy("timeWindow", milliseconds=100)
    assert run(machine, 0, drain=30) == [("drain", 1, 30)]
    run(machine, 40)
    assert machine.next_due_ms() == 100


def test_draining_twice_is_harmless() -> None:
    machine = strategy("count", threshold=3)
    assert run(machine, 1, drain=2) == [("drain", 1, 2)]
    assert machine.drain(2) == []


def test_a_drain_after_a_missed_timer_fires_the_timer() -> None:
    assert run(strategy("debounce", milliseconds=100), 0, drain=5_000) == [("quiet", 1, 100)]


@pytest.mark.parametrize(
    "options",
    [
        {"name": "debounce", "milliseconds": 100},
        {"name": "count", "threshold": 1_000},
        {"name": "timeWindow", "milliseconds": 100},
    ],
)
def test_a_batch_that_would_be_too_large_fires_first(options: dict[str, Any]) -> None:
    machine = strategy(**options)
    assert shape(machine.on_match(events(600), 1)) == []
    assert shape(machine.on_match(events(400), 2)) == []
    assert shape(machine.on_match(events(2), 3)) == [("full", 1_000, 3)]
    assert shape(machine.drain(4)) == [("drain", 2, 4)]
    big = 9 * 1024 * 1024
    assert shape(machine.on_match(events(size=big), 5)) == []
    assert shape(machine.on_match(events(size=big), 6)) == [("full", 1, 6)]


def test_a_full_batch_restarts_the_count_but_not_the_grid() -> None:
    machine = strategy("count", threshold=3)
    machine.on_match(events(900), 0)
    assert shape(machine.on_match(events(900), 1)) == [("full", 900, 1)]
    assert machine.on_match(events(), 2) == []
    assert shape(machine.on_match(events(), 3)) == [("threshold", 902, 3)]
    windows = strategy("timeWindow", milliseconds=100)
    windows.on_match(events(900), 0)
    assert shape(windows.on_match(events(900), 50)) == [("full", 900, 50)]
    assert windows.next_due_ms() == 100


def test_a_full_batch_restarts_the_longest_wait() -> None:
    machine = strategy("debounce", milliseconds=100, maxWaitMilliseconds=150)
    machine.on_match(events(900), 0)
    machine.on_match(events(900), 90)
    assert machine.next_due_ms() == 190


def test_a_match_that_is_too_large_alone_fires_alone() -> None:
    machine = strategy("count", threshold=3)
    assert machine.on_match(events(), 0) == []
    assert shape(machine.on_match(events(1_500), 1)) == [("full", 1, 1)]
    assert shape(machine.on_match(events(), 2)) == [("full", 1_500, 2)]
    assert shape(machine.drain(3)) == [("drain", 1, 3)]


def test_an_event_that_was_never_written_counts_with_its_line() -> None:
    event = make_event("info", 0, message="é" * 100)
    assert event_bytes(event) > 200
    event.size_bytes = 17
    assert event_bytes(event) == 17


def test_every_cause_is_known_to_the_contract() -> None:
    assert {cause.value for cause in Cause} == {
        "match", "quiet", "max_wait", "threshold", "window", "full", "drain",
    }  # fmt: skip
