"""Carries out what fires have set in motion: events, notifications, hooks, wakes (spec watches 6)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.errors import Forbidden, StoreFailed, WatchNotFound
from hankwatch.core.tasks import task_group
from hankwatch.processes.limits import ends_within
from hankwatch.watches.authority import Action, Authorizer
from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus, Woken
from hankwatch.watches.hooks import Hooks
from hankwatch.watches.outbox import DeliveryLease, Outbox
from hankwatch.watches.scope import Scope
from hankwatch.watches.store import WatchStore
from hankwatch.watches.wake import wake_text
from hankwatch.watches.watch import WITHDRAWN, Signal

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
SINK_LIMIT_S: Final = 10.0
"""Longest that a session that is woken may take to answer."""
MAX_ATTEMPTS: Final = 8
LEASE_S: Final = 60.0
LONGEST_NAP_S: Final = 1.0
BUSY_S: Final = 5.0
"""Until a busy session is asked again."""
AT_ONCE: Final = 32
"""Deliveries of one channel that are carried out side by side."""
_RETRY_S: Final = (1.0, 5.0, 15.0, 60.0, 300.0)


class Sessions(Protocol):
    """Where wakes go: sessions that can be given a turn."""

    async def wake(self, session: str, text: str, delivery: Delivery) -> Woken:
        """Accept one turn of a session, at most once per delivery id, whatever was killed in between."""
        ...


class Journals(Protocol):
    """Where ``watch.*`` events go: the journals of the homes this process writes."""

    def tell(self, delivery: Delivery) -> bool:
        """Journal it once per delivery id; False when the home is not written by this process."""
        ...


@dataclass(slots=True)
class Deliverer:
    """Delivers for the watches of a scope; ``run`` is called by one task and ends when cancelled."""

    store: WatchStore
    outbox: Outbox
    authorizer: Authorizer
    clock: Clock
    now: Callable[[], datetime]
    scope: Scope
    journals: Journals | None = None
    """None: another process writes the events of these homes."""
    sessions: Sessions | None = None
    """None: another process wakes the sessions of these homes."""
    hooks: Hooks = field(default_factory=Hooks)
    wakes_at_once: int = AT_ONCE
    """Wakes that are offered side by side."""
    _nudged: anyio.Event = field(default_factory=anyio.Event)
    _in_hand: dict[Channel, int] = field(default_factory=lambda: dict.fromkeys(Channel, 0))

    def nudge(self) -> None:
        """Look at once: something was decided."""
        self._nudged.set()

    async def run(self) -> None:
        """Deliver what waits, for ever; a sink that hangs or fails delays no other delivery."""
        if self.scope.is_held:
            await self._stored(partial(self.outbox.reclaim, self.scope.homes or frozenset()))
        async with task_group() as tasks:
            while True:
                self._nudged = anyio.Event()
                if not await self._begin(tasks):
                    await ends_within(self.clock, LONGEST_NAP_S, self._nudged.wait)

    async def deliver_waiting(self) -> int:
        """Carry out what is due once, and wait for it; how many were tried."""
        async with task_group() as tasks:
            return await self._begin(tasks)

    async def _begin(self, tasks: TaskGroup) -> int:
        channels = [Channel.IN_APP, Channel.HOOK]
        channels += [Channel.EVENT] if self.journals is not None else []
        channels += [Channel.WAKE] if self.sessions is not None else []
        begun = 0
        for channel in channels:
            most = self.wakes_at_once if channel is Channel.WAKE else AT_ONCE
            if (free := most - self._in_hand[channel]) <= 0:
                continue
            take = partial(
                self.outbox.take,
                channel,
                self.now(),
                homes=self.scope.homes,
                homeless=self.scope.homeless,
                limit=free,
                lease_s=LEASE_S,
            )
            for lease in await self._stored(take) or ():
                self._in_hand[channel] += 1
                begun += 1
                tasks.start_soon(self._deliver, lease)
        return begun

    async def _stored(self, work: Callable[[], T]) -> T | None:
        """What the store says; None while it fails, which is said in the log and tried again."""
        try:
            return await anyio.to_thread.run_sync(work)
        except StoreFailed as error:
            _LOG.warning("deliveries wait: %s", error)
            return None

    async def _deliver(self, lease: DeliveryLease) -> None:
        try:
            failures = list[Exception]()
            status, reason = DeliveryStatus.DELIVERED, None
            with contain(failures.append):
                status, reason = await self._carry_out(lease.delivery)
            if failures:
                status, reason = DeliveryStatus.PENDING, f"{type(failures[0]).__name__}: {failures[0]}"
            await self._stored(partial(self._end, lease, status, reason or "", failed=bool(failures)))
        except StoreFailed as error:  # its lease ends, then it is tried again
            _LOG.warning("delivery %s waits: %s", lease.delivery.id, error)
        finally:
            self._in_hand[lease.delivery.channel] -= 1
            self.nudge()

    def _end(self, lease: DeliveryLease, status: DeliveryStatus, reason: str, *, failed: bool) -> None:
        now, tries = self.now(), lease.delivery.attempts + 1
        if status is not DeliveryStatus.PENDING:
            self.outbox.finish(lease, status, now, reason or None)
        elif failed and tries >= MAX_ATTEMPTS:
            _LOG.warning("delivery %s is given up: %s", lease.delivery.id, reason)
            self.outbox.finish(lease, DeliveryStatus.DEAD, now, reason)
        else:
            wait_s = _RETRY_S[min(tries, len(_RETRY_S)) - 1] if failed else BUSY_S
            self.outbox.retry(lease, now + timedelta(seconds=wait_s), reason, failed=failed)

    async def _carry_out(self, delivery: Delivery) -> tuple[DeliveryStatus, str | None]:
        """How it went; PENDING asks for another attempt without counting as a failure."""
        if delivery.channel is Channel.EVENT:
            assert self.journals is not None
            told = self.journals.tell(delivery)
            return (DeliveryStatus.DELIVERED, None) if told else (DeliveryStatus.PENDING, "its home is not written")
        if (refusal := await self._refusal(delivery)) is not None:
            return DeliveryStatus.SUPPRESSED, refusal
        if delivery.channel is Channel.HOOK:
            await self.hooks.call(delivery, self.clock)
        if delivery.channel is not Channel.WAKE:
            return DeliveryStatus.DELIVERED, None
        assert self.sessions is not None
        assert delivery.session is not None
        return await self._wake(self.sessions, delivery.session, delivery)

    async def _wake(self, sessions: Sessions, session: str, delivery: Delivery) -> tuple[DeliveryStatus, str | None]:
        answers, failures = list[Woken](), list[Exception]()

        async def wake() -> None:
            with contain(failures.append):
                answers.append(await sessions.wake(session, wake_text(delivery.signal, delivery.content), delivery))

        if not await ends_within(self.clock, SINK_LIMIT_S, wake) and not answers:
            failures.append(TimeoutError(f"the session took longer than {SINK_LIMIT_S:g} s to answer"))
        if failures:
            raise failures[0]
        return {
            Woken.ACCEPTED: (DeliveryStatus.DELIVERED, None),
            Woken.BUSY: (DeliveryStatus.PENDING, "the session is busy"),
            Woken.GONE: (DeliveryStatus.DEAD, "there is no such session"),
        }[answers[0]]

    async def _refusal(self, delivery: Delivery) -> str | None:
        """Why its owner may not be told any more."""
        watch = await anyio.to_thread.run_sync(self.store.get, delivery.watch_id)
        if watch is None:
            return "the watch is gone"
        if watch.end_reason in WITHDRAWN and delivery.signal is not Signal.CANCELLED:
            return watch.end_reason.value
        owner = self.authorizer.owner_of(watch)
        if owner is None:
            return "its owner is gone"
        try:
            self.authorizer.check(owner, Action.DELIVER, watch)
        except Forbidden as error:
            return error.reason
        except WatchNotFound:
            return "its owner may not know of it any more"
        return None
