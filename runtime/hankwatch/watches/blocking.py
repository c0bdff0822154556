"""Functions that block, in threads that keep neither their caller nor the process when they hang."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """The result of ``work``. A caller that is cancelled goes on at once; the thread ends when ``work`` does.

    Raises:
        Exception: what ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: list[T], error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result[0])

    def run() -> None:
        result, failure = list[T](), None
        try:
            result.append(work())
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            failure = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    Thread(target=run, name="hankwatch check", daemon=True).start()
    return await future
