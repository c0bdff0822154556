"""Commands that a signal ends in order: what checks of watches have started is ended first (spec watches 8, 6)."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from hankwatch.processes.tree import KILL_LIMIT_S
from hankwatch.runner.backstop import Backstop
from hankwatch.runner.signals import heard

INTERRUPTED: Final = 130
"""Exit code of a command that a signal ended."""
STOP_S: Final = 25.0
"""What runs that were started, and then everything else, have to end in order."""
AGAIN_S: Final = KILL_LIMIT_S + 1.0
"""The same from the second signal on."""


def until_signal(work: Callable[[], Awaitable[int]], *, stop_s: float = STOP_S, again_s: float = AGAIN_S) -> int:
    """What ``work`` comes to, or 130 when SIGINT, SIGTERM or SIGHUP cancels it, which is waited for.

    More signals only shorten the wait: a raised ``KeyboardInterrupt`` would leave process trees behind, and threads
    that nobody ends. Like ``nohup`` has it, an ignored SIGHUP stays ignored.

    Args:
        work: What is done.
        stop_s: What everything has to end in order; the process is ended by force then.
        again_s: The same from the second signal on.
    """
    hangup = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
    stop = _Stop(stop_s, again_s)
    with heard([signal.SIGINT, signal.SIGTERM, *hangup], stop.on_signal):
        return anyio.run(stop.carry_out, work)


@dataclass(slots=True)
class _Stop:
    """Cancels work, from a thread, whether it has begun or not."""

    stop_s: float
    again_s: float
    _count: int = 0
    _cancel: Callable[[], object] = lambda: None
    _backstop: Backstop = field(init=False)

    def __post_init__(self) -> None:
        self._backstop = Backstop(self._last_word, runs=list, exit_code=lambda: INTERRUPTED)

    def on_signal(self) -> None:
        self._count += 1
        self._backstop.within(self.stop_s if self._count == 1 else self.again_s)
        with suppress(RuntimeError):  # the loop is closed already
            self._cancel()

    async def carry_out(self, work: Callable[[], Awaitable[int]]) -> int:
        with anyio.CancelScope() as scope:
            self._cancel = partial(asyncio.get_running_loop().call_soon_threadsafe, scope.cancel)
            if self._count:  # it came before there was something to cancel
                scope.cancel()
            return await work()
        return INTERRUPTED

    def _last_word(self) -> str:
        return f"Ended by force: something did not end in time (process {os.getpid()}); nothing is lost by it."
