"""The one writer of an execution directory, held by an OS lock (design "How it runs" 8).

The kernel frees the lock when its holder ends, however it ends, so there is no stale lock to clean up.
The file's content only tells people who holds it. The journal itself is locked too, so that deleting the
lock file lets nobody in.
"""

import fcntl
import json
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from hankwatch.core.errors import InfrastructureError, JournalLocked
from hankwatch.core.files import open_regular

ACQUIRE_S = 1.0
"""How long a starter tries before it refuses: a predecessor may just be ending."""
_RETRY_S = 0.02
_CONTENT_LIMIT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds an execution directory, as it wrote itself into the lock file."""

    pid: int
    """Process id; 0 when the holder has not named itself yet."""
    run: str = ""
    """Run id, or empty when the journal is held by something else than a run."""
    start_time: str = ""
    """When it took the lock: UTC, ISO-8601."""
    port: int | None = None
    """Where it serves its run on this machine, or None."""

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        run = f"run {self.run}, " if self.run else ""
        return f"process {self.pid} ({run}since {self.start_time})"


def lock_path(journal_path: Path) -> Path:
    """The lock file that guards a journal.

    ``<managed>/runtime.lock`` for ``<managed>/events/events.jsonl``, ``<path>.lock`` for any other journal.
    """
    if journal_path.name == "events.jsonl" and journal_path.parent.name == "events":
        return journal_path.parent.parent / "runtime.lock"
    return journal_path.with_name(f"{journal_path.name}.lock")


def holder(path: Path) -> Holder | None:
    """Who holds the lock file ``path``, or None when nobody does."""
    try:
        fd = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # A shared probe: two of them never refuse each other, and a starter it meets just tries again.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(fd)
    finally:
        os.close(fd)
    return None


class OwnerLock:
    """An exclusive lock that this process holds until ``release`` or its end.

    Children do not inherit it: the descriptor closes on exec, and children are exec'ed, never forked.
    """

    def __init__(self, path: Path, fd: int, holder: Holder) -> None:
        self.path = path
        self._fd = fd
        self._holder = holder

    @classmethod
    def acquire(cls, path: Path, *, run: str = "", wait_s: float = ACQUIRE_S) -> Self:
        """Take the lock, trying for ``wait_s`` seconds (blocking the calling thread).

        Raises:
            JournalLocked: somebody else holds it; names the process.
            InfrastructureError: the lock file cannot be opened.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = open_locked(path, wait_s=wait_s)
        except OSError as error:
            raise InfrastructureError(f"the lock {path} cannot be opened: {error.strerror}") from error
        me = Holder(os.getpid(), run, _now())
        try:
            _name_holder(fd, me)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd, me)

    def name_run(self, run: str) -> None:
        """Say that the holder carries out another run from now on.

        Raises:
            OSError: the file cannot be written.
        """
        self._name(replace(self._holder, run=run, start_time=_now()))

    def name_port(self, port: int) -> None:
        """Say where the holder serves its run.

        Raises:
            OSError: the file cannot be written.
        """
        self._name(replace(self._holder, port=port))

    def _name(self, holder: Holder) -> None:
        self._holder = holder
        _name_holder(self._fd, holder)

    def release(self) -> None:
        """Let go; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_locked(path: Path, flags: int = 0, *, wait_s: float = ACQUIRE_S) -> int:
    """A descriptor of ``path``, made if needed, that holds the exclusive lock; closing it lets go.

    Blocks the calling thread for at most ``wait_s`` seconds. What is locked is the file that ``path`` leads
    to: one that was deleted or replaced before its lock was had does not count.

    Raises:
        JournalLocked: somebody else holds it.
        OSError: the file cannot be opened or locked.
    """
    give_up_at = time.monotonic() + wait_s
    while True:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
        with ExitStack() as undo:
            undo.callback(os.close, fd)
            if _try_lock(fd) and leads_to(path, fd):
                undo.pop_all()
                return fd
            if time.monotonic() >= give_up_at:
                raise JournalLocked(path, str(_read_holder(fd)))
        time.sleep(_RETRY_S)


def leads_to(path: Path, fd: int) -> bool:
    """Whether ``path`` is still the name of the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _name_holder(fd: int, holder: Holder) -> None:
    me = {"pid": holder.pid, "run": holder.run, "startTime": holder.start_time, "port": holder.port}
    line = json.dumps(me).encode() + b"\n"
    # One write over the old content, then the cut: whoever reads in between finds a whole first line.
    os.pwrite(fd, line, 0)
    os.ftruncate(fd, len(line))


def _read_holder(fd: int) -> Holder:
    try:
        content = json.loads(os.pread(fd, _CONTENT_LIMIT_BYTES, 0).partition(b"\n")[0])
        return Holder(int(content["pid"]), str(content["run"]), str(content["startTime"]), content["port"])
    except (ValueError, TypeError, KeyError):
        return Holder(0)
