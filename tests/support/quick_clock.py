"""A virtual clock for laws that need thousands of steps."""

import asyncio
import heapq

from hankwatch.core.clock import VirtualClock


class QuickClock(VirtualClock):
    """A ``VirtualClock`` that goes on as soon as everything is blocked.

    The one it is made from asks anyio, which looks every 0.1 s of real time.
    """

    async def advance(self, seconds: float) -> None:
        until = self._seconds + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, woken = heapq.heappop(self._sleepers)
            self._seconds = max(self._seconds, due)
            woken.set()
            await settle()
        self._seconds = until


async def settle() -> None:
    """Return when every other task of this asyncio loop waits for something.

    A callback that is about to wake a task belongs to no task, so quiet has to last for a few rounds.
    """
    this = asyncio.current_task()
    quiet = 0
    while quiet < 4:
        await asyncio.sleep(0)
        waiters = [getattr(task, "_fut_waiter", None) for task in asyncio.all_tasks() if task is not this]
        quiet = quiet + 1 if all(waiter is not None and not waiter.done() for waiter in waiters) else 0
