"""Time limits, counted by the injected clock."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from hankwatch.core.clock import Clock

T = TypeVar("T")


def time_left(clock: Clock, limit_s: float) -> Callable[[], bool]:
    """Whether ``limit_s`` have not passed since now, to be asked again and again."""
    ends_s = clock.monotonic() + limit_s
    return lambda: clock.monotonic() < ends_s


async def within(clock: Clock, limit_s: float, call: Callable[[], Awaitable[T]]) -> T:
    """What ``call()`` returns or raises; it is cancelled when ``limit_s`` have passed first.

    Raises:
        TimeoutError: The limit came first, whatever ``call`` made of its cancellation.
    """
    expired = False
    done: list[T] = []

    async def expire() -> None:
        nonlocal expired
        await clock.sleep(limit_s)
        expired = True
        group.cancel_scope.cancel()

    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(expire)
            done.append(await call())
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        # The task group wraps what the body raises; the timer raises nothing.
        failure = failures.exceptions[0]
    if done:
        return done[0]
    if expired:
        raise TimeoutError from failure
    assert failure is not None
    raise failure
