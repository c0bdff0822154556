"""Wires the watches of this user: store, checks, service, engine, deliveries (design "How it runs" 13)."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from hankwatch.config.environment import child_environment
from hankwatch.core.clock import Clock, StreamTime, SystemClock
from hankwatch.core.errors import ConfigError, StoreFailed
from hankwatch.core.redaction import Redactor
from hankwatch.core.secret_names import holds_secret
from hankwatch.core.tasks import task_group
from hankwatch.home_watches import LOOK_S, store_address
from hankwatch.llm.client import ModelClient
from hankwatch.llm.router import ModelRouter
from hankwatch.options import base_dir
from hankwatch.runner.execution import executions
from hankwatch.runner.layout import Layout
from hankwatch.runner.lookups import Executions
from hankwatch.runner.waking import WakeRuns
from hankwatch.settings import Settings, load_settings
from hankwatch.watches.authority import Authorizer, LocalAuthorizer
from hankwatch.watches.bounds import Defaults
from hankwatch.watches.checks import Check, Checks, plugin_checks
from hankwatch.watches.codec import digest
from hankwatch.watches.database import Database
from hankwatch.watches.deliveries import Deliverer, Journals, Sessions
from hankwatch.watches.engine import WatchEngine
from hankwatch.watches.evaluator import Evaluator
from hankwatch.watches.feed import Feed
from hankwatch.watches.hooks import plugin_hooks
from hankwatch.watches.metrics import WatchMetrics
from hankwatch.watches.notify import Listener
from hankwatch.watches.outbox import Outbox, instant
from hankwatch.watches.policies import Caps
from hankwatch.watches.scope import Scope
from hankwatch.watches.service import WatchService
from hankwatch.watches.settings import WatchCaps
from hankwatch.watches.shipped import Judge, Purse, ci, judge, run_status, session_state
from hankwatch.watches.shipped.ci import CREDENTIALS
from hankwatch.watches.store import WatchStore
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import Kind, Status

_LOG = logging.getLogger(__name__)
_OURS: Final = ("HANKWATCH_", "HANKWEAVE_")


@dataclass(slots=True)
class Watching:
    """The watches of this user, open; used on the loop's thread."""

    service: WatchService
    store: WatchStore
    outbox: Outbox
    evaluator: Evaluator
    clock: Clock
    keep_ended: timedelta | None
    """How long ended watches stay; None for ever."""
    _nudges: list[Callable[[], None]] = field(default_factory=list)

    @property
    def now(self) -> Callable[[], datetime]:
        """The instant watches live in."""
        return self.evaluator.now

    def engine(self, scope: Scope, feeds: list[Feed]) -> WatchEngine:
        """Checks the watches of a scope; ``feeds`` may grow while it runs."""
        engine = WatchEngine(
            self.evaluator, scope, self.clock, feeds=feeds, keep_ended=self.keep_ended, on_decided=self.nudge
        )
        self._nudges.append(engine.nudge)
        return engine

    def deliverer(
        self, scope: Scope, *, journals: Journals | None = None, sessions: Sessions | None = None
    ) -> Deliverer:
        """Delivers for a scope."""
        deliverer = Deliverer(
            self.store,
            self.outbox,
            self.service.authorizer,
            self.clock,
            self.now,
            scope,
            journals=journals,
            sessions=sessions,
            hooks=self.service.hooks,
        )
        self._nudges.append(deliverer.nudge)
        return deliverer

    def listener(self) -> Listener:
        """Hears other workers of a PostgreSQL store, so that nobody waits for the next look."""
        return Listener(self.store.database, self.clock, (self.nudge,))

    def nudge(self) -> None:
        """Let engines and deliverers look at once."""
        for nudge in self._nudges:
            nudge()


@dataclass(slots=True)
class EngineRoom:
    """An engine and a deliverer for executions that come and go; journals and sessions are their runs' business.

    Args:
        watching: The watches.
        folder: An execution, or a folder of them; None for all.
        wake_runs: Runs the wakes of executions where no run is live.
    """

    watching: Watching
    folder: Path | None
    wake_runs: WakeRuns
    _feeds: dict[str, Feed] = field(default_factory=dict)

    async def run(self) -> None:
        """Check and deliver until cancelled."""
        scope, feeds = await anyio.to_thread.run_sync(self._look), list(self._feeds.values())
        engine, deliverer = self.watching.engine(scope, feeds), self.watching.deliverer(scope)
        async with task_group() as tasks:
            for part in (engine.run, deliverer.run, self.watching.listener().run):
                tasks.start_soon(part)
            while True:
                try:
                    await self.wake_runs.start(scope, tasks)
                    engine.scope = deliverer.scope = scope = await anyio.to_thread.run_sync(self._look)
                    feeds[:] = self._feeds.values()
                except (StoreFailed, OSError) as error:  # as engine and deliverer: tried again
                    _LOG.warning("which executions there are is not known: %s", error)
                await self.watching.clock.sleep(LOOK_S)

    def _look(self) -> Scope:
        """Which executions there are, and whose journals watches listen to."""
        listening = self.watching.store.find(statuses=(Status.ACTIVE,), verifiers=("event", "document"))
        scope = Scope(None if self.folder is None else _homes(self.folder.resolve()), homeless=True)
        homes = {watch.home for watch in listening if watch.home is not None}
        homes &= homes if scope.homes is None else scope.homes
        self._feeds = {home: self._feeds.get(home) or feed_of(Path(home)) for home in homes}
        return scope


def _homes(folder: Path) -> frozenset[str]:
    if Layout(folder).managed.is_dir():
        return frozenset({str(folder)})
    return frozenset(str(execution.layout.root.resolve()) for execution in executions(folder))


def feed_of(root: Path) -> Feed:
    """What the journal of an execution tells its watches."""
    layout = Layout(root)
    return Feed(root, layout.journal, layout.agent_root, _warn_of_overrun)


@asynccontextmanager
async def open_watches(
    *,
    home: Path | str | None = None,
    check: bool = False,
    config: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[WatchService]:
    """The watches of this user, for a program: the store, checks and policy that the settings name.

    Args:
        home: The execution directory that new watches belong to; None: they wake no session and hear no events.
        check: Check and deliver those of ``home``, or without it those that have no home, while the block runs, and
            call the hooks that are registered. Waking sessions stays with runs and ``hankwatch watch engine``.
        config: Settings file instead of the one found.
        environ: Default: this process's.

    Raises:
        ConfigError: the settings or the policy file have faults.
        UsageError: the store cannot be meant, or was made by another version.
        StoreFailed: it cannot be opened.
    """
    environ = os.environ if environ is None else environ
    root = None if home is None else Path(await anyio.Path(home).resolve())
    loaded = load_settings(environ=environ, cwd=Path.cwd(), config=None if config is None else Path(config))
    if not loaded.diagnostics.ok:
        raise ConfigError(loaded.diagnostics.errors)
    opened = open_watching(loaded.settings, environ, clock=SystemClock(), home=root)
    async with opened as watching, task_group() as tasks:
        if check:
            scope = Scope(frozenset() if root is None else frozenset({str(root)}), homeless=root is None)
            feeds = [] if root is None else [feed_of(root)]
            for part in (watching.engine(scope, feeds), watching.deliverer(scope), watching.listener()):
                tasks.start_soon(part.run)
        yield watching.service
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_watching(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    clock: Clock,
    home: Path | None = None,
    redactor: Redactor | None = None,
    model: ModelClient | None = None,
    authorizer: Authorizer | None = None,
    metrics: WatchMetrics | None = None,
) -> AsyncIterator[Watching]:
    """The watches, opened; makes the store when there is none.

    Args:
        settings: Section ``watches`` and where runs are.
        environ: Default: this process's.
        clock: Counts limits and waits.
        home: The execution directory that new watches belong to.
        redactor: Goes over what checks see; default: one that knows the secrets of ``environ``.
        model: Answers for the judge instead of the providers.
        authorizer: Says who may do what; default: the policy file of the settings, and without one everybody on this
            machine may what they may have armed.
        metrics: Counts what is decided, beside others that count there; default: its own.

    Raises:
        ConfigError: the policy file has faults.
        UsageError: the store cannot be meant, or was made by another version.
        StoreFailed: it cannot be opened.
    """
    environ = os.environ if environ is None else environ
    watches = settings.watches
    redactor = redactor or settings.redaction.redactor(environ)
    if authorizer is None:
        authorizer = await anyio.to_thread.run_sync(_authorizer, settings.serve.policy_file)
    async with AsyncExitStack() as stack:
        if model is None and watches.judge.model is not None:
            model = router = ModelRouter(environ, redactor=redactor, clock=clock)
            stack.push_async_callback(router.aclose)
        checks = Checks([*_shipped(settings, environ, clock, model), *_of_plugins()])
        database = Database(store_address(watches, environ))
        stack.callback(database.close)
        time = StreamTime(clock)
        store = WatchStore(database, _caps(watches.caps), max_fires_per_day=watches.max_wakes)
        env, place = harmless(environ, settings.redaction.variables), digest(database.shown)
        verifiers = Verifiers(checks, clock, env, redactor, place)
        evaluator = Evaluator(store, verifiers, authorizer, clock, lambda: instant(time.now_ms()))
        evaluator.metrics = metrics or evaluator.metrics
        service = WatchService(
            store,
            Outbox(database),
            evaluator,
            evaluator.authorizer,
            Defaults(watches.interval, None if home is None else str(home), asks_first=watches.activation == "ask"),
            journal_end=(lambda: 0) if home is None else (lambda: _size(Layout(home).journal)),
            agents_enabled=watches.enabled,
            keep_terminal_h=watches.keep_terminal_h,
        )
        keep = timedelta(hours=watches.keep_terminal_h) if watches.keep_terminal_h else None
        watching = Watching(service, store, service.outbox, evaluator, clock, keep)
        service.on_changed = watching.nudge
        for hooks in _of_packages():
            service.hooks.register(hooks)
        yield watching


def harmless(environ: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """What a watch's command gets of our environment: no secret, and nothing of ours (spec watches 4)."""
    hidden = set(secrets)
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OURS) and name not in hidden and not holds_secret(name, value)
    }


def _authorizer(policy: str | None) -> Authorizer:
    if policy is None:
        return LocalAuthorizer()
    from hankwatch.serve.policy import PolicyAuthorizer, PolicyFile

    return PolicyAuthorizer(PolicyFile(Path(policy).expanduser()))


def _shipped(settings: Settings, environ: Mapping[str, str], clock: Clock, model: ModelClient | None) -> list[Check]:
    runs = Executions(base_dir(settings, environ))
    given = {name: environ[name] for name in CREDENTIALS if name in environ}
    checks = [
        run_status(runs),
        session_state(runs),
        ci({**child_environment(harmless(environ), keep=("GH_*",)), **given}, clock),
    ]
    of_judge = settings.watches.judge
    if of_judge.model is not None and model is not None:
        purse = Purse(of_judge.max_calls_per_day, of_judge.max_dollars_per_day)
        checks.append(judge(Judge(model, of_judge.model, purse)))
    return checks


def _of_plugins() -> list[Check]:
    checks, faults = plugin_checks()
    for fault in faults:
        _LOG.warning("%s", fault)
    return checks


def _of_packages() -> Sequence[Mapping[str, Any]]:
    hooks, faults = plugin_hooks()
    for fault in faults:
        _LOG.warning("%s", fault)
    return hooks


def _caps(caps: WatchCaps) -> dict[Kind, Caps]:
    return {
        Kind.WATCH: Caps(per_session=caps.per_session, per_instance=caps.per_instance),
        Kind.AGENT_WATCH: Caps(per_tenant_actor_session=caps.agent_watches),
        Kind.MONITOR: Caps(
            per_session=caps.monitors_per_session,
            per_owner=caps.monitors_per_owner,
            tools_per_owner=caps.tool_monitors_per_owner,
        ),
    }


def _size(journal: Path) -> int:
    try:
        return journal.stat().st_size
    except FileNotFoundError:
        return 0


def _warn_of_overrun(watch_id: str, reason: str) -> None:
    _LOG.warning("watch %s is not asked any more: its patterns take too long (%s)", watch_id, reason)
