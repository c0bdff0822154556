"""The terminal a run was started from: single keys are read from it, and it is always given back as it was."""

import os
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import anyio

_LEAVE_VIEW = b"\x1b[?1049l\x1b[?25h\x1b[0m"
"""Back from the other screen, with a cursor and without colours."""
_ESCAPE = "\x1b"


class Tty:
    """Standard input as a keyboard, standard output as a screen. ``give_back`` may be called by any thread, at any time."""

    def __init__(self, *, shows_view: Callable[[], bool]) -> None:
        """``shows_view`` tells whether the view's screen is up at the moment."""
        self._shows_view = shows_view
        self._before: list[Any] | None = None

    @property
    def has_keys(self) -> bool:
        """Keys are being read."""
        return self._before is not None

    def take_keys(self) -> None:
        """Have each key at once and unseen; does nothing without a keyboard, or in the background.

        Ctrl-C stays a signal. Suspending and quitting by key are off: a stopped or killed process would leave the terminal so.
        """
        with suppress(OSError, ValueError, termios.error):
            fd = sys.stdin.fileno()
            if not os.isatty(fd) or os.tcgetpgrp(fd) != os.getpgrp():
                return
            before, ours = termios.tcgetattr(fd), termios.tcgetattr(fd)
            ours[3] &= ~(termios.ECHO | termios.ICANON)
            off = os.fpathconf(fd, "PC_VDISABLE").to_bytes()
            ours[6][termios.VMIN], ours[6][termios.VTIME] = 1, 0
            ours[6][termios.VSUSP] = ours[6][termios.VQUIT] = off
            termios.tcsetattr(fd, termios.TCSANOW, ours)
            self._before = before

    async def keys(self) -> AsyncIterator[str]:
        """Keys as they are pressed, until the terminal is gone.

        What arrives at once and is not one key held down is a paste or the code of an arrow: no key was meant.
        """
        fd = sys.stdin.fileno()
        while self.has_keys:
            await anyio.wait_readable(fd)
            try:
                pressed = os.read(fd, 1024).decode(errors="ignore")
            except OSError:  # the terminal was closed
                return
            if not pressed:
                return
            if len(set(pressed)) == 1 and pressed[0] != _ESCAPE:
                for key in pressed:
                    yield key

    def give_back_keys(self) -> None:
        """Make the keyboard as it was; never waits, not even for a terminal that nobody reads."""
        before, self._before = self._before, None
        with suppress(OSError, ValueError, termios.error):
            if before is not None:
                # Without draining the output first, which could take for ever.
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def give_back(self) -> None:
        """Make everything as it was, the screen too when its own thread did not come to it; never waits."""
        self.give_back_keys()
        if self._shows_view():
            with suppress(OSError, ValueError):
                # A descriptor of its own, so that not to wait is not passed on to whoever shares ours.
                fd = os.open(os.ttyname(sys.stdout.fileno()), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
                os.write(fd, _LEAVE_VIEW)
                os.close(fd)
