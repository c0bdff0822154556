"""``run --serve``: the server of one run, in a thread with a loop of its own, so that no request delays an event."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Final

import anyio
import anyio.to_thread

from hankwatch.app import LiveRun
from hankwatch.cli.serve import Given
from hankwatch.cli.settings import cli_settings
from hankwatch.core.clock import SystemClock
from hankwatch.serve.auth import Door, open_door
from hankwatch.serve.context import Serving
from hankwatch.serve.policy import PolicyAuthorizer
from hankwatch.serve.server import address_of, listen, serving_on
from hankwatch.serve.shelf import Shelf
from hankwatch.settings import Settings
from hankwatch.watches.metrics import WatchMetrics
from hankwatch.watches.scope import Scope
from hankwatch.watching import open_watching

_LOG = logging.getLogger(__name__)
START_S: Final = 10.0
"""Longest that opening the watches and starting the server may take."""
LAST_S: Final = 0.5
"""What clients have, once the run has ended, to be sent its last events."""
END_S: Final = 2.0
"""Longest that a run waits for its server's end; a stop leaves three seconds for all that comes after the drains."""


def run_server(port: int | None, config: Path | None) -> "RunServer":
    """Listens already; nothing of the run has begun.

    The address and the policy are those of the settings of this user, never of a hank.

    Args:
        port: Where; None for what the settings say.
        config: Settings file instead of the one found.

    Raises:
        UsageError: packages are missing, or others than this machine could call and nothing says who may.
        AddressTaken: the address cannot be listened on.
    """
    settings, environ = cli_settings(config, Given(None, port, None).flags())
    door = open_door(settings.serve.bind, settings.serve.policy_file)
    return RunServer(settings, environ, door, listen(settings.serve.bind, settings.serve.port))


@dataclass(slots=True)
class RunServer:
    """Answers requests about one run for as long as it is ``over`` it."""

    settings: Settings
    environ: Mapping[str, str]
    door: Door
    listening: socket.socket
    _started: "Future[Callable[[], None]]" = field(default_factory=Future)
    """What lets it end, called by any thread."""

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return address_of(self.listening)

    @asynccontextmanager
    async def over(self, live: LiveRun) -> AsyncIterator[None]:
        """The run is served while this is entered; the lock file says where.

        Raises:
            StoreFailed: the watches cannot be opened.
        """
        root, metrics = live.execution.layout.root, live.watch_metrics
        thread = Thread(target=self._carry, args=(root, metrics), name="server", daemon=True)
        thread.start()
        end = await anyio.to_thread.run_sync(self._started.result, START_S)
        live.name_port(self.listening.getsockname()[1])
        try:
            yield
            end()
            await anyio.to_thread.run_sync(thread.join, END_S)
        finally:
            end()

    def _carry(self, root: Path, metrics: WatchMetrics) -> None:
        try:
            anyio.run(self._serve, root.resolve(), metrics)
        except BaseException as error:  # noqa: BLE001 - whoever waits for the start is told; later it is the log's
            if self._started.done():
                _LOG.error("the run's server has failed; the run goes on", exc_info=error)
            else:
                self._started.set_exception(error)
        finally:
            self.listening.close()

    async def _serve(self, root: Path, metrics: WatchMetrics) -> None:
        authorizer = None if self.door.policy is None else PolicyAuthorizer(self.door.policy)
        opened = open_watching(
            self.settings,
            self.environ,
            clock=SystemClock(),
            home=root,
            authorizer=authorizer,
            metrics=metrics,
        )
        async with opened as watching:
            scope = Scope(frozenset({str(root)}), homeless=False)  # which the run itself checks
            serving = Serving(self.door, Shelf(root), watching.clock, watching.service, scope)
            async with serving_on(self.listening, serving):
                ended = anyio.Event()
                self._started.set_result(_from_any_thread(ended.set))
                await ended.wait()
                await serving.streams.finish(LAST_S)


def _from_any_thread(call: Callable[[], None]) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def called() -> None:
        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(call)

    return called
