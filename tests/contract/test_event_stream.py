"""What every event stream promises, with a journal and without one (design "How it runs" 1)."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.support.streams import START_MS, Bench, events, info, message

from hankwatch.events.envelope import Event, format_stamp
from hankwatch.stream import Journal, JournalReader

SECRET = "correct-horse-battery-staple"


@pytest.fixture(params=["journal", "memory"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    journal = Journal.open(tmp_path / "events.jsonl") if request.param == "journal" else None
    bench = Bench(journal, {"PASSPHRASE": SECRET})
    yield bench
    bench.stream.close()


def test_emit_returns_the_events_as_written(bench: Bench) -> None:
    heard: list[Event] = []
    bench.stream.subscribe(heard.append, name="all")
    written = bench.stream.emit(info("a"), info("b"))
    assert list(written) == heard
    assert [event.data for event in written] == [{"message": "a"}, {"message": "b"}]
    assert [event.size_bytes for event in written] == [len(orjson.dumps(e.envelope())) + 1 for e in written]
    assert [event.cursor for event in written] == [written[0].size_bytes, sum(e.size_bytes for e in written)]


def test_a_batch_shares_one_stamp_and_its_ids_grow(bench: Bench) -> None:
    a, b = bench.stream.emit(info("a"), info("b"))
    assert a.timestamp == b.timestamp == format_stamp(START_MS)
    assert a.at_ms == START_MS
    assert a.id < b.id


def test_a_nested_emit_takes_the_outer_stamp_and_comes_after_the_whole_batch(bench: Bench) -> None:
    def answer(event: Event) -> None:
        if message(event) == "a":
            bench.clock.passes(5)
            [nested] = bench.stream.emit(info("nested"))
            assert nested.at_ms == event.at_ms
            assert nested.cursor > 0

    bench.stream.subscribe(answer, name="answer")
    heard = bench.hear()
    bench.stream.emit(info("a"), info("b"))
    assert heard == ["a", "b", "nested"]


def test_the_time_inside_an_emit_is_its_stamp(bench: Bench) -> None:
    seen: list[int] = []

    def look(_event: Event) -> None:
        bench.clock.passes(1)
        seen.append(bench.stream.now_ms())

    bench.stream.subscribe(look, name="look")
    bench.stream.emit(info("a"))
    assert seen == [START_MS]
    assert bench.stream.now_ms() == START_MS + 1000


def test_what_is_due_runs_before_the_event(bench: Bench) -> None:
    heard = bench.hear()
    bench.emit_at(10, "due at 10")
    bench.emit_at(5, "due at 5")
    bench.emit_at(21, "not due")
    bench.clock.passes(0.020)
    bench.stream.emit(info("event at 20"))
    assert heard == ["due at 5", "due at 10", "event at 20"]


def test_timers_learn_their_own_instant_and_stamp_with_the_outer_one(bench: Bench) -> None:
    instants: list[int] = []
    stamps: list[int] = []

    def due(at_ms: int) -> None:
        instants.append(at_ms)
        stamps.extend(event.at_ms for event in bench.stream.emit(info("t")))

    bench.timers.at(START_MS + 5, due)
    bench.clock.passes(0.020)
    bench.stream.emit(info("e"))
    assert (instants, stamps) == ([START_MS + 5], [START_MS + 20])


def test_each_due_instant_is_finished_before_the_next_as_in_replay(bench: Bench) -> None:
    def answer(event: Event) -> None:
        if message(event).startswith("due"):
            bench.stream.emit(info(f"answer to {message(event)}"))

    bench.stream.subscribe(answer, name="answer")
    heard = bench.hear()
    bench.emit_at(5, "due 5")
    bench.emit_at(10, "due 10")
    bench.clock.passes(0.020)
    bench.stream.emit(info("e"))
    assert heard == ["due 5", "answer to due 5", "due 10", "answer to due 10", "e"]


def test_a_nested_emit_runs_no_timers(bench: Bench) -> None:
    def schedule(event: Event) -> None:
        if message(event) == "a":
            bench.emit_at(0, "timer")
            bench.stream.emit(info("nested"))

    bench.stream.subscribe(schedule, name="schedule")
    heard = bench.hear()
    bench.stream.emit(info("a"))
    assert heard == ["a", "nested"]
    bench.stream.emit(info("b"))
    assert heard == ["a", "nested", "timer", "b"]


def test_an_emit_of_nothing_runs_what_is_due(bench: Bench) -> None:
    heard = bench.hear()
    bench.emit_at(0, "timer")
    assert bench.stream.emit() == ()
    assert heard == ["timer"]


@pytest.mark.parametrize("step_s", [-3600, 3600, 315_360_000])
def test_a_wall_clock_that_is_set_moves_no_stamp(bench: Bench, step_s: float) -> None:
    [a] = bench.stream.emit(info("a"))
    bench.clock.step_wall(step_s)
    [b] = bench.stream.emit(info("b"))
    assert b.at_ms == a.at_ms
    assert b.id > a.id


def test_secrets_reach_neither_listeners_nor_the_line(bench: Bench) -> None:
    heard = bench.hear()
    [event] = bench.stream.emit(info(f"the key is {SECRET}."))
    assert SECRET not in heard[0]
    assert "[redacted:" in heard[0]
    assert event.size_bytes == len(orjson.dumps(event.envelope())) + 1


def test_a_failing_listener_is_reported_and_the_others_hear_everything(bench: Bench) -> None:
    def fail(event: Event) -> None:
        raise ValueError(message(event))

    bench.stream.subscribe(fail, name="bad")
    heard = bench.hear()
    bench.stream.emit(info("a"), info("b"))
    assert heard == ["a", "b"]
    assert [failure.name for failure in bench.listener_failures] == ["bad", "bad"]
    assert bench.failures == []


def test_a_failing_timer_is_reported_and_the_next_one_runs(bench: Bench) -> None:
    def fail(_at_ms: int) -> None:
        raise ValueError("broken")

    heard = bench.hear()
    bench.timers.at(START_MS, fail)
    bench.emit_at(0, "timer")
    bench.stream.emit(info("e"))
    assert heard == ["timer", "e"]
    assert [(failure.name, failure.event) for failure in bench.listener_failures] == [("timer", None)]


def test_a_recorded_event_keeps_its_id_and_stamp_and_moves_the_time(bench: Bench) -> None:
    [recorded] = events("a", at_ms=START_MS + 5000)
    recorded.cursor = 77
    written = bench.stream.emit_recorded(recorded)
    assert (written.id, written.timestamp, written.data) == (recorded.id, recorded.timestamp, recorded.data)
    assert written.cursor == written.size_bytes
    assert recorded.cursor == 77
    assert bench.stream.now_ms() == START_MS + 5000


def test_a_recorded_event_older_than_its_predecessor_is_raised_to_it(bench: Bench) -> None:
    new, old = events("new", at_ms=START_MS + 5)[0], events("old", at_ms=START_MS)[0]
    bench.stream.emit_recorded(new)
    raised = bench.stream.emit_recorded(old)
    assert (raised.at_ms, raised.timestamp) == (new.at_ms, new.timestamp)
    assert raised.id == old.id


def test_what_is_due_runs_before_a_recorded_event(bench: Bench) -> None:
    heard = bench.hear()
    bench.emit_at(5, "timer")
    bench.stream.emit_recorded(*events("recorded", at_ms=START_MS + 5))
    assert heard == ["timer", "recorded"]


def test_a_closed_stream_emits_nothing(bench: Bench) -> None:
    heard = bench.hear()
    bench.timers.at(START_MS, lambda _at_ms: heard.append("timer"))
    bench.stream.close()
    [recorded] = events("recorded")
    assert bench.stream.emit(info("late")) == ()
    assert bench.stream.emit_recorded(recorded) is recorded
    assert heard == []
    if bench.journal is not None:
        assert list(JournalReader(bench.journal.path).read()) == []
