"""Who calls a tool, and what it may see: the agent of a turn, a token's owner, or the operator of this machine."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.core.errors import Forbidden, RunNotFound
from hankwatch.serve.auth import Caller
from hankwatch.serve.homes import in_execution
from hankwatch.serve.shelf import Named, Shelf
from hankwatch.watches.authority import Principal
from hankwatch.watches.service import WatchService
from hankwatch.watches.turn import Turn


@dataclass(frozen=True, slots=True)
class Asker:
    """Whoever calls a tool."""

    caller: Caller
    shelf: Shelf
    """The executions it may be shown; of an agent's turn its own alone."""
    open_watches: Callable[[], Awaitable[WatchService]]
    """The service; one that nobody has used before may be opened by it."""
    clock: Clock
    watches_enabled: bool = True
    """``watches.enabled``: whether agents may use watches."""
    turn: Turn | None = None
    """The agent's turn; it says session, depth and home, which no argument of a tool does then."""
    has_watches: Callable[[], bool] = lambda: True
    """False while there is no store, which a question alone does not make."""

    @property
    def principal(self) -> Principal:
        """In whose name watches are asked for."""
        return self.caller.principal

    async def require_watches(self) -> None:
        """Refuse agents where the settings keep them from watches; what is set for the store goes before the rest.

        Raises:
            Forbidden: they do.
        """
        if not self.principal.is_agent:
            return
        enabled = self.watches_enabled
        if self.has_watches():
            enabled = bool((await (await self.open_watches()).settings())["enabled"].value)
        if not enabled:
            raise Forbidden("use", "*", "watches are switched off for agents (watches.enabled)")

    async def run(self, name: str) -> Named:
        """The run of that id.

        Raises:
            RunNotFound: there is none that the caller may know of.
        """
        return await anyio.to_thread.run_sync(self._find, name, abandon_on_cancel=True)

    async def watches(self, run: str | None = None) -> WatchService:
        """The service; with ``run`` for watches that belong to its execution.

        Raises:
            RunNotFound: as ``run``.
        """
        service = await self.open_watches()
        return service if run is None else in_execution(service, (await self.run(run)).followed)

    @property
    def sees_runs(self) -> bool:
        """Whether the shelf is anything it may know of."""
        return self.turn is not None or self.caller.sees_runs

    @property
    def root(self) -> Path | None:
        """The execution directory of the agent's turn."""
        return None if self.turn is None or self.turn.home is None else Path(self.turn.home)

    def _find(self, name: str) -> Named:
        if not self.sees_runs:
            raise RunNotFound(name, self.shelf.folder)
        return self.shelf.find(name)
