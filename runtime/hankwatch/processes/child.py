"""One child process with everything it starts: its lines, its stderr, its end."""

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.errors import NoWorkingDirectory, ProcessNotStarted
from hankwatch.processes.lines import DEFAULT_CAP_BYTES, Line, LineSplitter
from hankwatch.processes.pipes import ReadEnd, WriteEnd
from hankwatch.processes.tag import tagged
from hankwatch.processes.tree import MARKER, kill_marked

STDERR_TAIL_BYTES = 64 * 1024
"""How much of the end of stderr is kept (spec hank 2)."""

OUTPUT_GRACE_S = 2.0
"""How long after the child's exit others may keep its output open before they are ended."""

# stderr_tail takes what the child left in the pipe; a writer that never pauses must not keep it there.
_STDERR_READS = 32


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended; exactly one of the two is set."""

    code: int | None = None
    """Exit code, 0-255."""
    signal: int | None = None
    """Number of the signal that ended it."""


@asynccontextmanager
async def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    marker: str,
    clock: Clock,
    stdin: bool = False,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    on_stderr: Callable[[bytes], None] | None = None,
) -> AsyncIterator["Child"]:
    """Run ``argv`` in its own session with exactly ``env`` plus the marker; leaving the block ends its whole tree.

    ``argv[0]`` is looked up on the ``PATH`` of ``env``. Without ``stdin`` the child reads end of file. No
    descriptor of ours is inherited. ``on_stderr`` gets each chunk of its stderr as it is read. Leaving kills at once; call ``terminate_tree`` first to give a grace.
    Children that share a marker end together. An error of the block leaves it as it was raised.

    Raises:
        ProcessNotStarted: the program is not there, not executable, or the system has no room for it.
    """
    with tagged(marker):
        process = _start(argv, cwd, {**env, MARKER: marker}, stdin=stdin)
    child = Child(process, marker, clock, cap_bytes, on_stderr)
    try:
        async with anyio.create_task_group() as tasks:
            for task in (child._wait_for_exit, child._read_stderr, child._bound_output):
                tasks.start_soon(task)
            try:
                yield child
            finally:
                with anyio.CancelScope(shield=True):
                    await child._end()
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:  # the tasks above raise nothing of their own
            raise
        error = group.exceptions[0]
        raise error from error.__cause__
    finally:
        child._close()


class Child:
    """A running child; made by ``spawn``."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        marker: str,
        clock: Clock,
        cap_bytes: int,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._marker = marker
        self._clock = clock
        self._cap_bytes = cap_bytes
        self._on_stderr = on_stderr
        self._stdout = ReadEnd(process.stdout)
        self._stderr = ReadEnd(process.stderr)
        self._stdin = WriteEnd(process.stdin) if process.stdin else None
        self._stderr_tail = bytearray()
        self._exited = anyio.Event()
        self._exit = Exit()

    @property
    def pid(self) -> int:
        """The child's pid, its own until the block is left."""
        return self._process.pid

    async def lines(self) -> AsyncIterator[Line]:
        """Its stdout, line by line; to be read by one task, once.

        Ends when the child and everything that holds its stdout is gone; what still holds it
        ``OUTPUT_GRACE_S`` after the child's exit is ended. A child whose lines nobody reads stands still
        once its pipe is full.
        """
        splitter = LineSplitter(self._cap_bytes)
        async for chunk in self.chunks():
            for line in splitter.feed(chunk):
                yield line
        for line in splitter.finish():
            yield line

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its stdout as it is read, where lines do not matter; instead of ``lines``, and like it otherwise."""
        while chunk := await self._stdout.read():
            yield chunk

    async def send(self, data: bytes) -> bool:
        """Write to its stdin; False when it reads no more. Waits while it does not read: bound it."""
        assert self._stdin is not None, "the child was started without stdin"
        return await self._stdin.write(data)

    def close_stdin(self) -> None:
        """Give it end of file; idempotent, nothing without stdin."""
        if self._stdin is not None:
            self._stdin.close()

    async def wait(self) -> Exit:
        """Its end, whether or not others still hold its output."""
        await self._exited.wait()
        return self._exit

    async def terminate_tree(self, grace_s: float) -> tuple[int, ...]:
        """End it and all it started: SIGTERM, up to ``grace_s``, SIGKILL; the pids that would not die (none)."""
        leader = self.pid if self._process.returncode is None else None  # after the block the pid is not its own
        return await kill_marked(self._marker, clock=self._clock, grace_s=grace_s, leader=leader)

    def stderr_tail(self) -> str:
        """The last 64 KiB of its stderr, undecodable bytes replaced, not redacted; also after the block."""
        for _ in range(_STDERR_READS):
            if not (chunk := self._stderr.take()):
                break
            self._keep_stderr(chunk)
        return self._stderr_tail[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")

    def _keep_stderr(self, chunk: bytes) -> None:
        if self._on_stderr is not None:
            self._on_stderr(chunk)
        self._stderr_tail += chunk
        if len(self._stderr_tail) > 2 * STDERR_TAIL_BYTES:
            del self._stderr_tail[:-STDERR_TAIL_BYTES]

    async def _read_stderr(self) -> None:
        while chunk := await self._stderr.read():
            self._keep_stderr(chunk)

    async def _wait_for_exit(self) -> None:
        handle = os.pidfd_open(self.pid)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)
        self._note_exit()

    def _note_exit(self) -> None:
        # Not reaped before the block is left: until then neither its pid nor its group can be another's.
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is not None:
            exited = found.si_code == os.CLD_EXITED
            self._exit = Exit(code=found.si_status) if exited else Exit(signal=found.si_status)
            self._exited.set()

    async def _bound_output(self) -> None:
        await self._exited.wait()
        await self._clock.sleep(OUTPUT_GRACE_S)
        if not (self._stdout.ended and self._stderr.ended):
            await self.terminate_tree(0)
            self._stdout.cut()
            self._stderr.cut()

    async def _end(self) -> None:
        await self.terminate_tree(0)
        self._note_exit()
        self.stderr_tail()

    def _close(self) -> None:
        self.close_stdin()
        self._stdout.close()
        self._stderr.close()
        self._process.poll()


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, stdin: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        if error.filename == cwd:
            raise NoWorkingDirectory(argv[0], cwd, error.strerror or str(error)) from error
        raise ProcessNotStarted(argv[0], str(error)) from error
    except ValueError as error:  # a NUL in an argument
        raise ProcessNotStarted(argv[0], str(error)) from error
