"""Real child processes for tests: small Python programs with a marker of their own."""

import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import anyio

from hankwatch.core.clock import Clock, SystemClock, VirtualClock
from hankwatch.processes import Child, spawn


def python(code: str, *arguments: str) -> list[str]:
    """The command line that runs ``code``."""
    return [sys.executable, "-I", "-S", "-c", textwrap.dedent(code), *arguments]


def start(
    argv: list[str], *, clock: Clock | None = None, marker: str = "", stdin: bool = False, cap_bytes: int = 1 << 25
) -> AbstractAsyncContextManager[Child]:
    """``spawn`` with an empty environment and a marker nobody else has."""
    return spawn(
        argv,
        cwd=Path("/"),
        env={},
        marker=marker or f"test-{uuid4().hex}/codon/1",
        clock=clock or SystemClock(),
        stdin=stdin,
        cap_bytes=cap_bytes,
    )


@asynccontextmanager
async def flowing(clock: VirtualClock, *, step_s: float = 0.01) -> AsyncIterator[None]:
    """Virtual time that runs by ``step_s`` each millisecond: real children react in real time."""

    async def flow() -> None:
        while True:
            await clock.advance(step_s)
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flow)
        yield
        tasks.cancel_scope.cancel()


async def read_all(child: Child) -> list[bytes]:
    """The data of every line until the output ends."""
    return [line.data async for line in child.lines()]


async def first_line(child: Child) -> bytes:
    """The first line; the rest stays unread."""
    return (await anext(child.lines())).data
