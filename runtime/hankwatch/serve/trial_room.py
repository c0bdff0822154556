"""Where trials of a server take place: a few at a time, each with a sandbox of its own, ended when nobody waits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

import anyio
from starlette.requests import Request

from hankwatch.bench.sources import Source
from hankwatch.core.clock import Clock
from hankwatch.core.request_errors import TooManyTrials
from hankwatch.core.tasks import task_group
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.serve.trial import Asked, Trial, try_on

AT_ONCE: Final = 2
MAX_WAITING: Final = 16
"""Beside those under way; more are refused."""
T = TypeVar("T")


@dataclass(slots=True)
class TrialRoom:
    """All trials of a server; used on the loop's thread.

    A sandbox's worker is started by the first template that needs it, and kept for the next.
    """

    clock: Clock
    waiting: int = 0
    """Trials that wait for their turn."""
    _turns: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(AT_ONCE))
    _free: list[Sandbox] = field(default_factory=list)
    _catalog: ModelCatalog = field(default_factory=lambda: ModelCatalog({}))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The room is open inside; its workers end with it."""
        async with AsyncExitStack() as stack:
            for _ in range(AT_ONCE):
                self._free.append(await stack.enter_async_context(Sandbox(clock=self.clock)))
            yield
            self._free.clear()

    async def trial(self, asked: Asked, recording: Source) -> Trial:
        """What comes of one, when its turn has come.

        Raises:
            TooManyTrials: as many wait as may.
            UsageError: as ``try_on``.
        """
        async with self._sandbox() as sandbox:
            return await try_on(asked, recording, sandbox=sandbox, catalog=self._catalog, clock=self.clock)

    @asynccontextmanager
    async def _sandbox(self) -> AsyncIterator[Sandbox]:
        if self.waiting >= MAX_WAITING:
            raise TooManyTrials(MAX_WAITING)
        self.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.waiting -= 1
        sandbox = self._free.pop()
        try:
            yield sandbox
        finally:
            self._free.append(sandbox)
            self._turns.release()


async def unless_gone(request: Request, work: Callable[[], Awaitable[T]]) -> T | None:
    """What ``work`` comes to; it is cancelled when the client has gone away, which is None.

    The request's body must have been read.
    """
    done: list[T] = []

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with task_group() as tasks:
        tasks.start_soon(watch)
        done.append(await work())
        tasks.cancel_scope.cancel()
    return done[0] if done else None
