"""Checks watches when they are due, and when something about them happens (spec watches 7)."""

import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.errors import StoreFailed
from hankwatch.core.tasks import task_group
from hankwatch.processes.limits import ends_within
from hankwatch.watches.decide import Decision
from hankwatch.watches.evaluator import Evaluator
from hankwatch.watches.feed import Feed
from hankwatch.watches.listening import Listening
from hankwatch.watches.scope import Scope
from hankwatch.watches.specs import EventSpec
from hankwatch.watches.store import Lease

_LOG = logging.getLogger(__name__)
POOL: Final = 8
"""Checks that run side by side; final ones, and those that events ask for, come on top."""
LONGEST_NAP_S: Final = 1.0
"""Other processes write the store too."""
_FULL_NAP_S: Final = 0.25
"""While the pool is full, so often is it looked whether a deadline has come."""
_EVENTS_APART_S: Final = 0.1
"""However many events the bus brings, so often is looked what they mean."""
BEAT_S: Final = 5.0
PURGE_S: Final = 600.0
_MAX_FINAL: Final = 256
_MAX_HEARD: Final = 64
_BACKOFF_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(slots=True)
class WatchEngine:
    """Runs until cancelled; ``run`` is called by one task. A failing store is tried again, ever later."""

    evaluator: Evaluator
    scope: Scope
    clock: Clock
    feeds: list[Feed] = field(default_factory=list)
    keep_ended: timedelta | None = timedelta(hours=24)
    """How long ended watches stay unless the store says otherwise; None for ever."""
    on_decided: Callable[[], None] = lambda: None
    """Called after each commit that may have told something, so that deliveries need not wait."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _listening: Listening = field(init=False)
    _running: dict[str, anyio.CancelScope] = field(default_factory=dict)
    _nudged: anyio.Event = field(default_factory=anyio.Event)
    _heard_at: float | None = None
    _beaten_at: float | None = None
    _purged_at: float | None = None

    def __post_init__(self) -> None:
        self._listening = Listening(self.evaluator, self.feeds, self.clock)

    def nudge(self) -> None:
        """Look at once: something was armed, edited, or happened."""
        self._nudged.set()

    def on_event(self) -> None:
        """Look soon: the bus brought an event, of which there may be thousands in a second."""
        now = self.clock.monotonic()
        if self._heard_at is None or now - self._heard_at >= _EVENTS_APART_S:
            self._heard_at = now
            self._nudged.set()

    async def run(self) -> None:
        """Check what is due, for ever."""
        failures = 0
        async with task_group() as tasks:
            try:
                while True:
                    self._nudged = anyio.Event()
                    try:
                        nap_s = await self._look(tasks)
                        failures = 0
                    except StoreFailed as error:
                        nap_s = _BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)]
                        failures += 1
                        _LOG.warning("watches are not checked for %g s: %s", nap_s, error)
                    await ends_within(self.clock, nap_s, self._nudged.wait)
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await self._retire()

    async def _look(self, tasks: TaskGroup) -> float:
        """Start what is due; how long nothing will be, in seconds."""
        await self._keep_house()
        has_more = await self._hear(tasks)
        for lease in await self._take(limit=_MAX_FINAL, final=True):
            self._start(tasks, lease, self._final(lease))
        if (free := POOL - len(self._running)) > 0:
            for lease in await self._take(limit=free, final=False):
                self._start(tasks, lease, self.evaluator.evaluate)
        if has_more:
            return 0.0
        if len(self._running) >= POOL:
            return _FULL_NAP_S  # the end of a check nudges
        now = self.evaluator.now()
        due = await anyio.to_thread.run_sync(self.evaluator.store.next_due, self.scope, now)
        if due is None:
            return LONGEST_NAP_S
        return min(LONGEST_NAP_S, max(0.0, (due - self.evaluator.now()).total_seconds()))

    async def _take(self, *, limit: int, final: bool) -> list[Lease]:
        evaluator = self.evaluator
        take = partial(
            evaluator.store.take,
            self.scope,
            evaluator.now(),
            limit=limit,
            lease_s=evaluator.lease_s,
            final=final,
        )
        return await anyio.to_thread.run_sync(take)

    async def _hear(self, tasks: TaskGroup) -> bool:
        """Start what events ask for; whether there is more to read."""
        if not self.feeds:
            return False
        has_more = await anyio.to_thread.run_sync(self._listening.hear)
        ready = partial(self._listening.ready, self.evaluator.now(), _MAX_HEARD)
        for lease, tripped in await anyio.to_thread.run_sync(ready):
            if isinstance(lease.watch.verifier, EventSpec):
                self._start(tasks, lease, partial(self._listening.fire, tripped=tripped))
            else:
                self._start(tasks, lease, self.evaluator.evaluate)
        return has_more

    def _final(self, lease: Lease) -> Callable[[Lease], Awaitable[Decision | None]]:
        tripped = self._listening.pop(lease.watch.id) if isinstance(lease.watch.verifier, EventSpec) else None
        return self.evaluator.evaluate if tripped is None else partial(self._listening.fire, tripped=tripped)

    def _start(self, tasks: TaskGroup, lease: Lease, evaluate: Callable[[Lease], Awaitable[Decision | None]]) -> None:
        """Check a watch; a check of it that still runs has lost its lease and is given up."""
        if (earlier := self._running.get(lease.watch.id)) is not None:
            earlier.cancel()
        self._running[lease.watch.id] = scope = anyio.CancelScope()
        tasks.start_soon(self._check, lease, evaluate, scope)

    async def _check(
        self, lease: Lease, evaluate: Callable[[Lease], Awaitable[Decision | None]], scope: anyio.CancelScope
    ) -> None:
        failures, decided = list[Exception](), list[Decision | None]()
        try:
            with contain(failures.append), scope:
                decided.append(await evaluate(lease))
        except StoreFailed as error:
            failures.append(error)
        finally:
            if self._running.get(lease.watch.id) is scope:
                del self._running[lease.watch.id]
            if len(self._running) <= POOL // 2:  # several are taken at once
                self.nudge()
        for failure in failures:  # its lease ends, then it is tried again
            _LOG.warning("watch %s was not checked: %s", lease.watch.id, failure)
        if any(decision is None or decision.raised for decision in decided):
            self.on_decided()

    async def _keep_house(self) -> None:
        store, now, monotonic = self.evaluator.store, self.evaluator.now(), self.clock.monotonic()
        if self._beaten_at is None:
            await anyio.to_thread.run_sync(store.reclaim, self.scope)
        if self._beaten_at is None or monotonic - self._beaten_at >= BEAT_S:
            homes = "all homes" if self.scope.homes is None else ", ".join(sorted(self.scope.homes))
            await anyio.to_thread.run_sync(store.recover_clock, now)
            await anyio.to_thread.run_sync(store.engines.beat, self.id, homes, now)
            self._beaten_at = monotonic
        if self._purged_at is None or monotonic - self._purged_at >= PURGE_S:
            await anyio.to_thread.run_sync(self._purge)
            self._purged_at = monotonic

    def _purge(self) -> None:
        """Forget what ended long enough ago."""
        keep, mine = self.keep_ended, self.evaluator.store.settings.read().get("keep_terminal_h")
        if mine is not None:
            keep = timedelta(hours=mine.value) if mine.value else None
        if keep is not None:
            self.evaluator.store.purge(self.evaluator.now() - keep)

    async def _retire(self) -> None:
        try:
            await anyio.to_thread.run_sync(self.evaluator.store.engines.retire, self.id)
        except StoreFailed as error:
            _LOG.warning("%s", error)
