"""What an event stream does because a journal lies under it."""

import errno
import logging
import os
from pathlib import Path

import pytest
from tests.support.streams import START_MS, Bench, events, info, message

from hankwatch.core.clock import LATEST_MS, StreamTime, Timers
from hankwatch.core.errors import JournalWriteError
from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event, IdSource
from hankwatch.stream import EventStream, Journal, JournalReader, OwnerLock, lock_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.write", refuse)


def test_an_event_is_in_the_journal_before_anyone_hears_of_it(path: Path) -> None:
    bench = Bench(Journal.open(path))
    bench.stream.subscribe(lambda event: seen.append(JournalReader(path).last(1)[0].id == event.id), name="look")
    seen: list[bool] = []
    bench.stream.emit(info("a"))
    assert seen == [True]
    bench.stream.close()


def test_interval_zero_syncs_before_publishing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    bench = Bench(Journal.open(path, sync_interval_s=0))
    bench.stream.subscribe(lambda _event: order.append("published"), name="hear")
    monkeypatch.setattr("os.fdatasync", lambda _fd: order.append("synced"))
    bench.stream.emit(info("a"))
    assert order == ["synced", "published"]
    bench.stream.close()


def test_stamps_do_not_go_behind_those_of_an_earlier_process(path: Path) -> None:
    journal = Journal.open(path)
    journal.append(events("from the future", at_ms=START_MS + 60_000))
    journal.close()
    bench = Bench(Journal.open(path))
    [event] = bench.stream.emit(info("now"))
    assert event.at_ms == START_MS + 60_000
    bench.stream.close()


def test_a_journal_failure_closes_the_stream_and_is_told_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(Journal.open(path))
    heard = bench.hear()
    bench.stream.emit(info("a"))
    with monkeypatch.context() as patch:
        fill_disk(patch)
        with pytest.raises(JournalWriteError, match="No space left"):
            bench.stream.emit(info("lost"))
    assert bench.stream.emit(info("after")) == ()
    assert heard == ["a"]
    assert [type(failure) for failure in bench.failures] == [JournalWriteError]
    bench.stream.close()
    assert bench.written() == ["a"]
    OwnerLock.acquire(lock_path(path), wait_s=0).release()


def test_a_failure_in_a_nested_emit_reaches_the_outer_caller(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(Journal.open(path))

    def answer(_event: Event) -> None:
        with monkeypatch.context() as patch:
            fill_disk(patch)
            bench.stream.emit(info("nested"))

    bench.stream.subscribe(answer, name="answer")
    heard = bench.hear()
    with pytest.raises(JournalWriteError):
        bench.stream.emit(info("a"))
    assert len(bench.failures) == 1
    assert bench.listener_failures == []
    assert heard == []  # the run is over: nothing more is delivered
    bench.stream.close()


def test_a_failed_last_sync_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    bench = Bench(Journal.open(path))
    bench.stream.emit(info("a"))
    monkeypatch.setattr("os.fdatasync", refuse)
    with pytest.raises(JournalWriteError):
        bench.stream.close()
    assert len(bench.failures) == 1
    bench.stream.close()


def test_a_failure_nobody_takes_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stream = EventStream(
        None,
        time=StreamTime(),
        timers=Timers(),
        redactor=Redactor({}),
        ids=IdSource(),
        on_failure=lambda _error: None,
    )
    stream.subscribe(lambda event: [][len(message(event))], name="careless")
    with caplog.at_level(logging.ERROR):
        stream.emit(info("a"))
    assert "careless failed on info" in caplog.text


SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def test_no_part_of_an_event_from_outside_brings_a_secret_into_the_journal(path: Path) -> None:
    bench = Bench(Journal.open(path), {"MY": "correct horse"})
    heard: list[Event] = []
    bench.stream.subscribe(heard.append, name="hear")
    [event] = events("a")
    event.id, event.type, event.data = f"id-{SECRET}", "from correct horse", {SECRET: "correct horse"}
    written = bench.stream.emit_recorded(event)
    bench.stream.close()
    content = path.read_text()
    assert "ghp_" not in content
    assert "horse" not in content
    assert (written.id[:13], written.type[:17]) == ("id-[redacted:", "from [redacted:MY")
    assert [(e.id, e.type) for e in heard] == [(e.id, e.type) for e in JournalReader(path).read()]


def test_a_secret_that_is_a_part_of_our_own_type_names_changes_no_type(path: Path) -> None:
    bench = Bench(Journal.open(path), {"MY": "completed"})
    [event] = events("a")
    event.type = "codon.completed"
    assert bench.stream.emit_recorded(event).type == "codon.completed"
    bench.stream.close()


@pytest.mark.parametrize("stamp", ["9999-12-31T23:59:59.990Z", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"])
def test_a_journal_with_a_stamp_from_the_end_of_time_goes_on(path: Path, stamp: str) -> None:
    [far] = events("far")
    far.timestamp = stamp
    path.write_bytes(encode_line(far))
    for text in ("a", "b"):
        bench = Bench(Journal.open(path))
        ticks: list[int] = []
        bench.timers.at(bench.stream.now_ms() + 5, ticks.append)
        bench.stream.emit(info(text))
        bench.clock.step_wall(-5)
        bench.stream.close()
    read = list(JournalReader(path).read())
    assert [message(event) for event in read] == ["far", "a", "b"]
    assert [event.at_ms for event in read] == sorted(event.at_ms for event in read)


@pytest.mark.parametrize("at_ms", [10**18, -(10**18)])
def test_an_event_beyond_every_stamp_is_emitted_with_the_nearest(path: Path, at_ms: int) -> None:
    bench = Bench(Journal.open(path))
    [event] = events("far")
    event.at_ms = at_ms
    bench.stream.emit_recorded(event)
    [after] = bench.stream.emit(info("after"))
    bench.stream.close()
    assert [message(event) for event in JournalReader(path).read()] == ["far", "after"]
    assert after.at_ms <= LATEST_MS
