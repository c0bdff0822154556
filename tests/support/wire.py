"""Real HTTP under virtual time: requests take real time, waits between them take none."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from hankwatch.core.clock import VirtualClock
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.llm.litellm import LitellmClient


class Wire(LitellmClient):
    """Providers over real HTTP; notes when each request left, and moves the clock while none is under way."""

    def __init__(self, env: dict[str, str], *, clock: VirtualClock) -> None:
        super().__init__(ModelCatalog(env), clock=clock)
        self.clock = clock
        self.left_at_s: list[tuple[float, str]] = []
        """(virtual second, model) of each request."""
        self._under_way = 0
        self._changed = anyio.Event()

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.left_at_s.append((self.clock.monotonic(), request.model))
        self._change(1)
        try:
            return await super().complete(request)
        finally:
            self._change(-1)

    async def play(self, *calls: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Make the calls side by side; the clock goes on, in steps of 0.25 s, whenever nothing is under way."""
        async with anyio.create_task_group() as clockwork:
            clockwork.start_soon(self._tick)
            async with anyio.create_task_group() as calling:
                for call in calls:
                    calling.start_soon(call)
            clockwork.cancel_scope.cancel()

    async def _tick(self) -> None:
        while True:
            while self._under_way:
                await self._changed.wait()
            await self.clock.advance(0.25)

    def _change(self, by: int) -> None:
        self._under_way += by
        self._changed.set()
        self._changed = anyio.Event()
