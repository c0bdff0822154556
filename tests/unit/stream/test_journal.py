import errno
import itertools
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson
import pytest
from tests.support.streams import events, message

from hankwatch.core.errors import JournalLocked, JournalWriteError
from hankwatch.stream import Journal, JournalReader, OwnerLock, lock_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".hankweave" / "events" / "events.jsonl"


def test_an_event_is_one_line_with_the_four_keys_in_order(path: Path) -> None:
    journal = Journal.open(path)
    [event] = events("hello")
    journal.append([event])
    journal.close()
    assert path.read_bytes() == orjson.dumps(event.envelope()) + b"\n"


def test_a_cursor_is_where_the_line_ends(path: Path) -> None:
    journal = Journal.open(path)
    batch = events("a", "bb", "ccc")
    journal.append(batch[:1])
    journal.append(batch[1:])
    lengths = [len(line) for line in path.read_bytes().splitlines(keepends=True)]
    assert [event.size_bytes for event in batch] == lengths
    assert [event.cursor for event in batch] == [sum(lengths[:1]), sum(lengths[:2]), sum(lengths)]
    assert journal.size_bytes == batch[-1].cursor
    journal.close()


def test_cursors_go_on_where_an_earlier_process_stopped(path: Path) -> None:
    journal = Journal.open(path)
    journal.append(events("a"))
    journal.close()
    journal = Journal.open(path)
    [event] = events("b")
    journal.append([event])
    journal.close()
    assert event.cursor == path.stat().st_size


def test_a_batch_is_one_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(path)
    writes: list[int] = []
    write = os.write

    def count(fd: int, data: bytes) -> int:
        writes.append(len(data))
        return write(fd, data)

    monkeypatch.setattr("os.write", count)
    journal.append(events("a", "b", "c"))
    assert writes == [journal.size_bytes]
    journal.close()


def test_a_second_writer_is_refused(path: Path) -> None:
    journal = Journal.open(path, run="first")
    with pytest.raises(JournalLocked, match="run first"):
        OwnerLock.acquire(lock_path(path), wait_s=0)
    journal.close()


def test_a_closed_journal_takes_no_more(path: Path) -> None:
    journal = Journal.open(path)
    journal.close()
    journal.close()
    with pytest.raises(JournalWriteError):
        journal.append(events("late"))
    assert path.stat().st_size == 0


def test_a_journal_that_cannot_be_created_names_it_and_frees_the_lock(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(JournalWriteError, match=r"events\.jsonl"):
        Journal.open(tmp_path / "events.jsonl")
    OwnerLock.acquire(lock_path(tmp_path / "events.jsonl"), wait_s=0).release()


def test_a_short_write_is_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(path)
    write = os.write
    monkeypatch.setattr("os.write", lambda fd, data: write(fd, bytes(data[:7])))
    batch = events("a", "b", "c")
    journal.append(batch)
    journal.close()
    assert [(e.id, e.cursor) for e in JournalReader(path).read()] == [(e.id, e.cursor) for e in batch]


def failing_after(limit_bytes: int, error: OSError | None) -> Callable[[int, bytes], int]:
    """A disk that takes so many bytes and then fails, or (None) takes nothing without saying why."""
    write, left = os.write, limit_bytes

    def limited(fd: int, data: bytes) -> int:
        nonlocal left
        if not left:
            if error is None:
                return 0
            raise error
        count = write(fd, bytes(data[:left]))
        left -= count
        return count

    return limited


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), None])
def test_a_failed_write_leaves_the_whole_lines_at_every_offset(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError | None
) -> None:
    whole = b"".join(orjson.dumps(event.envelope()) + b"\n" for event in events("a", "b"))
    for limit in range(len(whole)):
        path.unlink(missing_ok=True)
        journal = Journal.open(path)
        with monkeypatch.context() as patch:
            patch.setattr("os.write", failing_after(limit, error))
            with pytest.raises(JournalWriteError, match=r"space|takes no more"):
                journal.append(events("a", "b"))
        journal.close()
        assert path.read_bytes() == whole[: whole.rfind(b"\n", 0, limit) + 1]


def test_after_a_failed_write_nothing_is_appended_even_when_the_disk_is_well_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.open(path)
    with monkeypatch.context() as patch:
        patch.setattr("os.write", failing_after(0, OSError(errno.EIO, "I/O error")))
        with pytest.raises(JournalWriteError):
            journal.append(events("a"))
    with pytest.raises(JournalWriteError):
        journal.append(events("b"))
    journal.close()
    assert path.stat().st_size == 0


def test_a_fragment_that_cannot_be_cut_is_left_to_the_next_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "I/O error")

    journal = Journal.open(path)
    with monkeypatch.context() as patch:
        patch.setattr("os.write", failing_after(10, OSError(errno.EIO, "I/O error")))
        patch.setattr("os.ftruncate", refuse)
        with pytest.raises(JournalWriteError):
            journal.append(events("a"))
    journal.close()
    journal = Journal.open(path)
    assert journal.repaired is not None
    assert journal.repaired.size_bytes == 10
    journal.close()


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    monkeypatch.setattr("os.fdatasync", made.append)
    return made


def test_a_sync_is_made_only_when_something_was_appended(path: Path, syncs: list[int]) -> None:
    journal = Journal.open(path)
    journal.sync()
    assert len(syncs) == 0
    journal.append(events("a"))
    assert journal.dirty
    journal.sync()
    journal.sync()
    assert len(syncs) == 1
    assert not journal.dirty
    journal.close()
    assert len(syncs) == 1


def test_closing_syncs_what_is_left(path: Path, syncs: list[int]) -> None:
    journal = Journal.open(path)
    journal.append(events("a"))
    journal.close()
    assert len(syncs) == 1


def test_interval_zero_syncs_with_every_append(path: Path, syncs: list[int]) -> None:
    journal = Journal.open(path, sync_interval_s=0)
    journal.append(events("a", "b"))
    journal.append(events("c"))
    assert len(syncs) == 2
    journal.close()


def test_interval_none_never_syncs(path: Path, syncs: list[int]) -> None:
    journal = Journal.open(path, sync_interval_s=None)
    journal.append(events("a"))
    assert not journal.dirty
    journal.sync()
    journal.close()
    assert len(syncs) == 0


def test_a_failed_sync_ends_the_journal_with_its_lines_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    journal = Journal.open(path)
    journal.append(events("a"))
    monkeypatch.setattr("os.fdatasync", refuse)
    with pytest.raises(JournalWriteError, match="I/O error"):
        journal.sync()
    with pytest.raises(JournalWriteError):
        journal.append(events("b"))
    journal.close()
    assert [message(event) for event in JournalReader(path).read()] == ["a"]


def test_a_failed_sync_at_close_still_frees_the_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    journal = Journal.open(path)
    journal.append(events("a"))
    monkeypatch.setattr("os.fdatasync", refuse)
    with pytest.raises(JournalWriteError):
        journal.close()
    OwnerLock.acquire(lock_path(path), wait_s=0).release()


def unlink(path: Path) -> None:
    path.unlink()


def replace_by_another(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.write_bytes(b"")


def delete_everything(path: Path) -> None:
    shutil.rmtree(path.parent.parent)


def move_the_directory(path: Path) -> None:
    path.parent.parent.rename(path.parent.parent.with_name("moved"))


GONE = pytest.mark.parametrize("lose", [unlink, replace_by_another, delete_everything, move_the_directory])


@GONE
@pytest.mark.parametrize("interval_s", [1.0, 0, None])
def test_a_journal_that_was_lost_under_its_writer_is_a_failed_sync(
    path: Path, lose: Callable[[Path], None], interval_s: float | None
) -> None:
    journal = Journal.open(path, sync_interval_s=interval_s)
    journal.append(events("a"))
    lose(path)
    with pytest.raises(JournalWriteError, match="deleted or replaced while in use"):
        journal.sync()
    with pytest.raises(JournalWriteError):
        journal.append(events("b"))
    journal.close()


@GONE
def test_a_journal_that_was_lost_after_its_last_sync_fails_to_close(path: Path, lose: Callable[[Path], None]) -> None:
    journal = Journal.open(path)
    journal.append(events("a"))
    journal.sync()
    lose(path)
    with pytest.raises(JournalWriteError, match="deleted or replaced while in use"):
        journal.close()


def test_syncing_each_append_notices_the_loss_at_once(path: Path) -> None:
    journal = Journal.open(path, sync_interval_s=0)
    path.unlink()
    with pytest.raises(JournalWriteError, match="deleted or replaced"):
        journal.append(events("a"))


def test_deleting_the_lock_file_lets_no_second_writer_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(path)
    lock_path(path).unlink()
    monkeypatch.setattr("hankwatch.stream.lock._RETRY_S", 0)
    monkeypatch.setattr("time.monotonic", partial(next, itertools.count()))
    with pytest.raises(JournalLocked):
        Journal.open(path)
    journal.append(events("a"))
    journal.close()
    Journal.open(path).close()
