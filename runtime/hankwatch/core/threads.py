"""Blocking work that can be given up."""

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")


def never() -> bool:
    """The answer to whether it was given up, for work that is not."""
    return False


async def run_cancellable(work: Callable[[Callable[[], bool]], T]) -> T:
    """What ``work`` comes to in a thread; cancelling this returns at once.

    ``work`` is given a question that it has to ask often: whether it was given up, so that nobody wants what it
    comes to and it should end. It changes nothing that others see.
    """
    given_up = threading.Event()
    try:
        return await anyio.to_thread.run_sync(work, given_up.is_set, abandon_on_cancel=True)
    finally:
        given_up.set()
