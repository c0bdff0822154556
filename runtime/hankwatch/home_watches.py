"""The watches of a run's own execution: opened once somebody has armed one, and not loaded before (design rule 10)."""

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from hankwatch.config.layers import leaves
from hankwatch.core.clock import Clock
from hankwatch.core.errors import ConfigError, HankwatchError, StoreFailed, UsageError, WatchNotFound
from hankwatch.core.redaction import Redactor
from hankwatch.core.tasks import task_group
from hankwatch.llm.client import ModelClient
from hankwatch.processes.limits import ends_within
from hankwatch.runner.wakes import Wake, WakeDesk, WatchJournal
from hankwatch.settings import Settings
from hankwatch.watches.authority import operator
from hankwatch.watches.metrics import WatchMetrics
from hankwatch.watches.settings import WatchesSettings
from hankwatch.watches.watch import Status

if TYPE_CHECKING:
    from hankwatch.watches.deliveries import Deliverer
    from hankwatch.watches.engine import WatchEngine
    from hankwatch.watching import Watching

_LOG = logging.getLogger(__name__)
FILE: Final = "watches.db"
_SQLITE: Final = "sqlite:///"
_PASSWORD: Final = re.compile(r"(?<=[?&])password=[^&]*&?|(?<=//)(?P<user>[^/@:]*):[^@/]*(?=@)")
LOOK_S: Final = 2.0
"""How often a run looks whether somebody has armed a watch, and an engine which executions there are."""
OPENING_S: Final = 10.0
"""Longest that a codon waits for a store that was just made."""
MAX_REFUSED: Final = 100
"""Wakes that nobody can run, at one time."""


@dataclass(slots=True)
class HomeWatches:
    """The watches of the execution that this process holds (``runner.wakes.Watches``).

    They are opened once somebody has armed one: most runs have none, and make no store.
    """

    settings: Settings
    environ: Mapping[str, str]
    root: Path
    redactor: Redactor
    clock: Clock
    journal: WatchJournal
    desk: WakeDesk
    on_failure: Callable[[HankwatchError], None]
    """Told why they cannot be opened; the run goes on without them."""
    model: ModelClient | None = None
    metrics: WatchMetrics = field(default_factory=WatchMetrics)
    _watching: "Watching | None" = None
    _deliverer: "Deliverer | None" = None
    _waker: "Deliverer | None" = None
    _is_open: anyio.Event = field(default_factory=anyio.Event)
    """Also when that has failed."""

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """See ``runner.wakes.Watches``."""
        async with task_group() as tasks:
            await tasks.start(self._run)
            try:
                yield
                await self._tell_all()
            finally:
                tasks.cancel_scope.cancel()

    async def next_wake(self, sessions: Collection[str] = ()) -> Wake | None:
        """See ``runner.wakes.Watches``."""
        self.desk.waiting = sessions
        await self._hasten()
        for _ in range(MAX_REFUSED):
            if self._waker is None:
                return None
            tried = await self._waker.deliver_waiting()
            if (wake := self.desk.take()) is not None or not tried:
                return wake
        return None

    async def _hasten(self) -> None:
        if self._watching is None:
            return
        try:
            await anyio.to_thread.run_sync(self._watching.outbox.hasten, str(self.root), self._watching.now())
        except StoreFailed as error:
            _LOG.warning("wakes wait: %s", error)

    async def tell_every_ending(self, sessions: Collection[str]) -> None:
        """See ``runner.wakes.Watches``; whoever armed the first watch of all may have done so just now."""
        if self._watching is None and has_store(self.settings.watches, self.environ):
            await ends_within(self.clock, OPENING_S, self._is_open.wait)
        if self._watching is None:
            return
        for session in sessions:
            try:
                await self._watching.service.tell_every_ending(session)
            except StoreFailed as error:
                _LOG.warning("session %s is not told of every ending: %s", session, error)

    async def cancel(self, sessions: Collection[str]) -> None:
        """See ``runner.wakes.Watches``."""
        for watch_id in await self.live(sessions):
            assert self._watching is not None
            try:
                await self._watching.service.cancel_watch(operator(), watch_id)
            except (StoreFailed, WatchNotFound) as error:
                _LOG.warning("watch %s is not cancelled: %s", watch_id, error)

    async def live(self, sessions: Collection[str] = ()) -> tuple[str, ...]:
        """See ``runner.wakes.Watches``."""
        if self._watching is None:
            return ()
        find = partial(self._watching.store.find, home=str(self.root), statuses=(Status.ACTIVE,))
        try:
            found = await anyio.to_thread.run_sync(find)
            return tuple(
                watch.id for watch in found if watch.fault is None and (not sessions or watch.session in sessions)
            )
        except StoreFailed as error:
            _LOG.warning("which watches are live is not known: %s", error)
            return ()

    async def _run(self, *, task_status: TaskStatus[None]) -> None:
        is_told = False
        while not has_store(self.settings.watches, self.environ):
            if not is_told:
                task_status.started()
                is_told = True
            await self.clock.sleep(LOOK_S)
        try:
            async with self._opened(), task_group() as tasks:
                if not is_told:
                    task_status.started()
                assert self._watching is not None
                assert self._deliverer is not None
                for part in (self._engine().run, self._deliverer.run, self._watching.listener().run):
                    tasks.start_soon(part)
        except (StoreFailed, UsageError, ConfigError) as error:
            self.on_failure(error)
            self._is_open.set()
            if not is_told:
                task_status.started()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        from hankwatch.watches.scope import Scope
        from hankwatch.watching import open_watching

        opened = open_watching(
            self.settings,
            self.environ,
            clock=self.clock,
            home=self.root,
            redactor=self.redactor,
            model=self.model,
            metrics=self.metrics,
        )
        async with opened as watching:
            scope = Scope(frozenset({str(self.root)}), homeless=False, is_held=True)
            self._watching = watching
            self._deliverer = watching.deliverer(scope, journals=self.journal)
            self._waker = watching.deliverer(scope, sessions=self.desk)
            # At once, before the line asks for wakes: whoever held this home before has died.
            await anyio.to_thread.run_sync(watching.outbox.reclaim, scope.homes or frozenset())
            self._is_open.set()
            self._waker.wakes_at_once = 1  # the line runs one after the other, and what is accepted has to run
            try:
                yield
            finally:
                self._watching = self._deliverer = self._waker = None

    def _engine(self) -> "WatchEngine":
        from hankwatch.watches.scope import Scope
        from hankwatch.watching import feed_of

        assert self._watching is not None
        scope = Scope(frozenset({str(self.root)}), homeless=False, is_held=True)
        return self._watching.engine(scope, [feed_of(self.root)])

    async def _tell_all(self) -> None:
        """What was decided before the run ends is told in it."""
        while self._deliverer is not None and await self._deliverer.deliver_waiting():
            pass


def agent_variables(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """What lets an agent's own ``hankwatch watch …`` find the watches of its run under the same rules, as variables.

    Its environment has neither our variables nor, perhaps, our home directory. A password is not handed on.
    """
    usual = dict(leaves(Settings().watches.model_dump(mode="json")))
    said: dict[str, Any] = {
        "_".join(("watches", *name)): value
        for name, value in leaves(settings.watches.model_dump(mode="json"))
        if value != usual[name]
    }
    with suppress(UsageError):  # no home directory: no watches
        said["watches_store"] = _shown_to_agents(store_address(settings.watches, environ))
    if settings.serve.policy_file is not None:
        said["serve_policy_file"] = str(Path(settings.serve.policy_file).expanduser().absolute())
    return {
        f"HANKWATCH_{name}".upper(): value if isinstance(value, str) else json.dumps(value)
        for name, value in said.items()
    }


def _shown_to_agents(address: str) -> str:
    """An agent stands elsewhere, and knows no passwords."""
    path = address.removeprefix(_SQLITE)
    if "://" not in path:
        return str(Path(path).expanduser().absolute())
    return _PASSWORD.sub(r"\g<user>", address)


def store_address(settings: WatchesSettings, environ: Mapping[str, str]) -> str:
    """The database of the watches: as set, or one file in the user's state folder.

    Raises:
        UsageError: there is no home directory, and no store is set.
    """
    if settings.store is not None:
        return settings.store
    state, home = environ.get("XDG_STATE_HOME"), environ.get("HOME")
    if not state and not home:
        raise UsageError("there is no home directory to keep watches in", hint="set HOME, or watches.store")
    return str((Path(state) if state else Path(str(home)) / ".local" / "state") / "hankwatch" / FILE)


def has_store(settings: WatchesSettings, environ: Mapping[str, str]) -> bool:
    """Whether somebody has armed a watch here before; a database server is taken to be there."""
    try:
        address = store_address(settings, environ)
    except UsageError:
        return False
    path = address.removeprefix(_SQLITE)
    return "://" in path or Path(path).expanduser().exists()
