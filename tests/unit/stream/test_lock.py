import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hankwatch.core.errors import InfrastructureError, JournalLocked
from hankwatch.stream import OwnerLock, holder, lock_path


def test_the_lock_of_an_execution_lies_in_its_managed_folder() -> None:
    assert lock_path(Path("x/.hankweave/events/events.jsonl")) == Path("x/.hankweave/runtime.lock")


def test_any_other_journal_has_its_lock_beside_it() -> None:
    assert lock_path(Path("x/other.jsonl")) == Path("x/other.jsonl.lock")


def test_a_second_owner_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    first = OwnerLock.acquire(tmp_path / "a.lock", run="run-7")
    with pytest.raises(JournalLocked, match=rf"process {os.getpid()} \(run run-7, since 20\d\d-"):
        OwnerLock.acquire(tmp_path / "a.lock", wait_s=0)
    first.release()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    OwnerLock.acquire(tmp_path / "a.lock").release()
    OwnerLock.acquire(tmp_path / "a.lock", wait_s=0).release()


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    lock = OwnerLock.acquire(tmp_path / "a.lock")
    lock.release()
    lock.release()


def test_a_starter_waits_for_a_predecessor_that_is_just_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = OwnerLock.acquire(tmp_path / "a.lock")
    monkeypatch.setattr("time.sleep", lambda _seconds: first.release())
    OwnerLock.acquire(tmp_path / "a.lock").release()


def test_the_holder_is_told_without_taking_the_lock(tmp_path: Path) -> None:
    lock = OwnerLock.acquire(tmp_path / "a.lock", run="run-7")
    found = holder(tmp_path / "a.lock")
    assert found is not None
    assert (found.pid, found.run, found.port) == (os.getpid(), "run-7", None)
    lock.release()


def test_a_free_lock_has_no_holder_whatever_the_file_says(tmp_path: Path) -> None:
    OwnerLock.acquire(tmp_path / "a.lock", run="gone").release()
    assert holder(tmp_path / "a.lock") is None
    assert holder(tmp_path / "never.lock") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": null}', b"\xff"])
def test_a_holder_that_has_not_named_itself_is_another_process(tmp_path: Path, content: bytes) -> None:
    lock = OwnerLock.acquire(tmp_path / "a.lock")
    (tmp_path / "a.lock").write_bytes(content)
    assert str(holder(tmp_path / "a.lock")) == "another process"
    lock.release()


def test_a_long_earlier_content_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text("x" * 1000)
    lock = OwnerLock.acquire(tmp_path / "a.lock", run="r")
    found = holder(tmp_path / "a.lock")
    assert found is not None
    assert found.run == "r"
    assert (tmp_path / "a.lock").stat().st_size < 200
    lock.release()


def test_a_lock_that_cannot_be_opened_is_an_infrastructure_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match="cannot be opened"):
        OwnerLock.acquire(tmp_path / "file" / "a.lock")


def test_children_do_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = OwnerLock.acquire(tmp_path / "a.lock")
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, close_fds=False):
        lock.release()
        # Not at once: the kernel may still be closing descriptors for the exec.
        OwnerLock.acquire(tmp_path / "a.lock").release()


def test_a_lock_file_that_is_replaced_while_a_starter_waits_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    real = fcntl.flock

    def deleted_just_before(fd: int, operation: int) -> None:
        monkeypatch.undo()
        path.unlink()
        real(fd, operation)

    monkeypatch.setattr("fcntl.flock", deleted_just_before)
    lock = OwnerLock.acquire(path, run="mine")
    found = holder(path)
    assert found is not None
    assert found.run == "mine"
    lock.release()


def test_a_lock_file_that_is_deleted_again_and_again_is_given_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hankwatch.stream.lock.leads_to", lambda _path, _fd: False)
    with pytest.raises(JournalLocked):
        OwnerLock.acquire(tmp_path / "a.lock", wait_s=0)


def test_the_lock_keeps_its_port_when_the_process_goes_on_with_another_run(tmp_path: Path) -> None:
    lock = OwnerLock.acquire(tmp_path / "runtime.lock", run="one")
    lock.name_port(8765)
    lock.name_run("two")
    held = holder(tmp_path / "runtime.lock")
    lock.release()
    assert held is not None
    assert (held.run, held.port) == ("two", 8765)
