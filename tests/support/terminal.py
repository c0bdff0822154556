"""A command on a terminal of its own, as a person has it: keys in, screen out, size and modes."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.cli import COMMAND, Cli

_STYLE = re.compile(rb"\x1b\[[0-9;]*m")
ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"
"""What goes to the view's screen and back."""


@dataclass
class Terminal:
    """The person's side of it."""

    process: "subprocess.Popen[bytes]"
    _master: int
    _slave: int
    _before: list[Any]
    _after: list[Any] = field(default_factory=list)
    output: bytes = b""
    """All that was printed so far."""
    _mark: int = field(default=0)

    def press(self, keys: str) -> None:
        """Keys, all at once."""
        self.forget()
        os.write(self._master, keys.encode())

    def forget(self) -> None:
        """Only what is printed from now on counts for ``text``."""
        self._mark = len(self.output)

    def resize(self, columns: int, lines: int) -> None:
        _resize(self._master, columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def until(self, words: str, *, within_s: float = 15.0) -> None:
        """Read until these words were printed after the last key."""
        deadline = time.monotonic() + within_s
        while words not in self.text:
            assert time.monotonic() < deadline, (words, self.text[-3_000:])
            assert self._read(0.1), (words, self.text[-3_000:])

    @property
    def text(self) -> str:
        """What was printed since the last key, without colours."""
        return _STYLE.sub(b"", self.output[self._mark :]).decode(errors="replace")

    def ended(self, *, within_s: float = 15.0) -> int:
        """Read until the command has ended; its exit code."""
        deadline = time.monotonic() + within_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.output[-3_000:]
            self._read(0.1)
        while self._read(0.0, some=True):
            pass
        self._after = termios.tcgetattr(self._slave)
        return self.process.returncode

    @property
    def restored(self) -> bool:
        """Its modes are those from before the command, and its first screen is shown with a cursor."""
        screens = [self.output.rfind(ENTERED), self.output.rfind(LEFT)]
        cursors = [self.output.rfind(b"\x1b[?25l"), self.output.rfind(b"\x1b[?25h")]
        same_modes = self._after == self._before
        return same_modes and screens == sorted(screens) and cursors == sorted(cursors)

    @property
    def takes_keys(self) -> bool:
        """Keys arrive one by one and are not shown."""
        return not termios.tcgetattr(self._slave)[3] & (termios.ICANON | termios.ECHO)

    def _read(self, wait_s: float, *, some: bool = False) -> bool:
        """Take what was printed; False at the end, or with ``some`` when there was nothing."""
        if not select.select([self._master], [], [], wait_s)[0]:
            return not some
        try:
            read = os.read(self._master, 65_536)
        except OSError:  # nobody has the other side open
            return False
        self.output += read
        return bool(read)


@contextmanager
def on_terminal(
    cli: Cli, *arguments: object, columns: int = 120, lines: int = 40, env: dict[str, str] | None = None
) -> Iterator[Terminal]:
    """Start a command on a new terminal; killed at the end if it still lives."""
    master, slave = pty.openpty()
    try:
        _resize(master, columns, lines)
        process = subprocess.Popen(
            ["setsid", "--ctty", *COMMAND, *map(str, arguments)],
            cwd=cli.cwd,
            env=cli.environ(**{"TERM": "xterm-256color", **(env or {})}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        try:
            yield Terminal(process, master, slave, termios.tcgetattr(slave))
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    finally:
        os.close(master)
        os.close(slave)


def _resize(fd: int, columns: int, lines: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
