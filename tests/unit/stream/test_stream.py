"""What an event stream does because a journal lies under it."""

import errno
import logging
import os
from pathlib import Path

import pytest
from tests.support.streams import START_MS, Bench, events, info, message

from hankwatch.core.clock import StreamTime, Timers
from hankwatch.core.errors import JournalWriteError
from hankwatch.core.redaction import Redactor
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
