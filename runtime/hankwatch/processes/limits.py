"""Waiting no longer than a limit on the injected clock."""

from collections.abc import Awaitable, Callable

import anyio

from hankwatch.core.clock import Clock


async def ends_within(clock: Clock, seconds: float, work: Callable[[], Awaitable[object]]) -> bool:
    """Run ``work`` for at most ``seconds`` of ``clock``; False when it was cancelled by that limit.

    ``work`` must not raise: it runs in a task group, which would wrap its error.
    """
    ended = False

    async def limit(scope: anyio.CancelScope) -> None:
        await clock.sleep(seconds)
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(limit, tasks.cancel_scope)
        await work()
        ended = True
        tasks.cancel_scope.cancel()
    return ended
