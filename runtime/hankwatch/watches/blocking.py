"""Other people's functions: when they hang, block or quit, neither their caller nor the process does."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import iscoroutinefunction
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Quit(Exception):
    """A function tried to end more than itself: the process, or the task that called it."""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


async def contained(work: Callable[[], Awaitable[T] | T]) -> T:
    """The result of ``work``; what it raises to end more than itself is a failure like any other.

    Raises:
        Quit: it exited, or raised a cancellation that nobody asked for.
        Exception: what ``work`` raises.
    """
    try:
        result = work()
        return await result if isinstance(result, Awaitable) else result
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise Quit("it was cancelled, and not by its caller") from error
    except SystemExit as error:
        raise Quit(f"it tried to end the process with {error.code!r}") from error


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """The result of ``work``. A caller that is cancelled goes on at once; the thread ends when ``work`` does.

    Raises:
        Quit: it tried to end the process.
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
        except BaseException as error:  # noqa: BLE001 - nobody but us hears of it in a thread of its own
            failure = Quit(f"it raised {type(error).__name__}")
            failure.__cause__ = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    Thread(target=run, name="hankwatch check", daemon=True).start()
    return await future
