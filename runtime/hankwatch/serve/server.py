"""Listening: one socket, one application, an end within its time."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
import uvicorn

from hankwatch.core.clock import Clock
from hankwatch.core.errors import AddressTaken
from hankwatch.core.tasks import task_group
from hankwatch.serve.app import make_app
from hankwatch.serve.connections import HttpConnection, SocketConnection
from hankwatch.serve.context import Serving

_LOG = logging.getLogger(__name__)
GRACE_S: Final = 3
"""What requests that are under way have at the end."""
_BACKLOG: Final = 128
_MAX_CONNECTIONS: Final = 1_024
_MAX_HEAD_BYTES: Final = 32 * 1024
_MAX_MESSAGE_BYTES: Final = 64 * 1024
_KEEP_ALIVE_S: Final = 15
_NO_MORE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EVERY_S: Final = 60.0


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        AddressTaken: it cannot; most often another process does there.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With its protocol named, which `create_server` does not: asyncio sends at once on such connections alone,
        # and else what follows an answer's head waits 40 ms for the client's word that it has it.
        with ExitStack() as undo:
            listening = undo.enter_context(socket.socket(family, kind, proto))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
            undo.pop_all()
            return listening
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise AddressTaken(f"{host}:{port}", reason) from error


def address_of(listening: socket.socket) -> str:
    """Where a browser finds it; what listens everywhere is shown by its loopback address."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - shown, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


class _Uvicorn(uvicorn.Server):
    """Leaves signals to whoever owns the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving_on(listening: socket.socket, serving: Serving) -> AsyncIterator[None]:
    """Requests are answered while this is entered; at its end streams are closed, and requests have ``GRACE_S``."""
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # its warnings are of single requests, as many as clients like
    config = uvicorn.Config(
        make_app(serving),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        http=HttpConnection,
        ws=SocketConnection,
        ws_max_size=_MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
    )
    server = _Uvicorn(config)
    asyncio.get_running_loop().set_exception_handler(_Refusals(serving.clock))
    async with task_group() as tasks:
        tasks.start_soon(_serve, server, listening)
        while not server.started:
            await serving.clock.sleep(0.01)
        try:
            yield
        finally:
            serving.streams.close()
            server.should_exit = True


@dataclass(slots=True)
class _Refusals:
    """What the loop says when no connection can be accepted, many times a second: told once a minute."""

    clock: Clock
    _told_s: float = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _NO_MORE):
            loop.default_exception_handler(context)
        elif self.clock.monotonic() - self._told_s >= _EVERY_S:
            self._told_s = self.clock.monotonic()
            _LOG.warning("no connection is accepted for now: %s", error.strerror)


async def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
    """To its own end, which ``should_exit`` asks for: a cancelled one would leave its connections as they are."""
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[listening])
