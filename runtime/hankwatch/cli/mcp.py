"""``mcp``: the tools of watches and runs for one agent, over stdin and stdout (Model Context Protocol)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import ConfigError, HankwatchError, UsageError
from hankwatch.core.tasks import task_group
from hankwatch.home_watches import has_store
from hankwatch.options import base_dir
from hankwatch.settings import Settings, load_settings
from hankwatch.watches.turn import Turn

if TYPE_CHECKING:
    from hankwatch.serve.mcp_asker import Asker
    from hankwatch.watches.authority import Principal
    from hankwatch.watches.service import WatchService


def mcp(folder: Path | None, *, config: Path | None) -> int:
    """Answer until stdin ends; 0 then.

    In an agent's turn it speaks for that agent and shows its own execution; else for the operator of this machine.

    Raises:
        UsageError: the folder is none, or an agent named one.
        ConfigError: the settings have faults.
    """
    if find_spec("mcp") is None:
        raise UsageError("this needs packages that are not installed", hint="pip install 'hankwatch[serve]'")
    turn = Turn.of(os.environ)
    if folder is not None and turn is not None:
        raise UsageError("an agent is shown its own execution", hint="leave the folder out")
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name an execution directory, or a folder of them")
    return anyio.run(_serve, _Here(turn, folder, _settings(config, turn), os.environ))


def _settings(config: Path | None, turn: Turn | None) -> Settings:
    """In a turn the working directory is the agent's, and what lies there sets nothing."""
    cwd = Path.cwd() if turn is None or turn.home is None else Path(turn.home)
    loaded = load_settings(environ=os.environ, cwd=cwd, config=config)
    if not loaded.diagnostics.ok:
        raise ConfigError(loaded.diagnostics.errors)
    return loaded.settings


@dataclass(slots=True)
class _Here:
    """Who asks, and the watches, which are opened when they are asked for first."""

    turn: Turn | None
    folder: Path | None
    settings: Settings
    environ: Mapping[str, str]
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _service: "WatchService | None" = None
    _failure: HankwatchError | None = None

    def asker(self) -> "Asker":
        """Whoever started this process.

        Raises:
            ConfigError: the policy file has faults.
        """
        from hankwatch.serve.auth import Caller
        from hankwatch.serve.mcp_asker import Asker
        from hankwatch.serve.shelf import Shelf

        home = None if self.turn is None or self.turn.home is None else Path(self.turn.home)
        return Asker(
            Caller(self._principal()),
            Shelf(home or self.folder or base_dir(self.settings, self.environ)),
            self.watches,
            SystemClock(),
            watches_enabled=self.settings.watches.enabled,
            turn=self.turn,
            has_watches=partial(has_store, self.settings.watches, self.environ),
        )

    def _principal(self) -> "Principal":
        from hankwatch.watches.authority import LocalAuthorizer, operator

        if self.turn is None:
            return operator()
        policy = self.settings.serve.policy_file
        if policy is None:
            return LocalAuthorizer().agent_of(self.turn)
        from hankwatch.serve.policy import PolicyAuthorizer, PolicyFile

        return PolicyAuthorizer(PolicyFile(Path(policy).expanduser())).agent_of(self.turn)

    async def watches(self) -> "WatchService":
        """See ``Asker.open_watches``."""
        self._wanted.set()
        await self._answered.wait()
        if self._service is None:
            assert self._failure is not None
            raise self._failure
        return self._service

    async def keep_open(self) -> None:
        """Opens them on demand, again when that has failed."""
        from hankwatch.watching import open_watching

        home = None if self.turn is None or self.turn.home is None else Path(self.turn.home)
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            try:
                async with open_watching(self.settings, self.environ, clock=SystemClock(), home=home) as watching:
                    self._service = watching.service
                    self._answered.set()
                    await anyio.sleep_forever()
            except HankwatchError as error:
                self._failure = error
                self._answered.set()
                self._answered = anyio.Event()


async def _serve(here: _Here) -> int:
    from mcp.server.stdio import stdio_server

    from hankwatch.serve.mcp_server import make_server
    from hankwatch.serve.mcp_stdio import own_stdin

    asker = here.asker()

    def asker_of(_: Any) -> "Asker":
        return asker

    server = make_server(asker_of)
    async with task_group() as tasks, stdio_server(own_stdin()) as (requests, answers):
        tasks.start_soon(here.keep_open)
        await server.run(requests, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    return 0
