"""One evaluation from lease to commit (spec watches 3, "Order of one evaluation")."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.core.errors import Forbidden, WatchNotFound
from hankwatch.processes.limits import ends_within
from hankwatch.watches.authority import Action, Authorizer
from hankwatch.watches.decide import Decision, decide, end
from hankwatch.watches.policies import AtExpiry, policy
from hankwatch.watches.store import Lease, WatchStore
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import EndReason, Observation, Outcome, Status, Watch

LEASE_SLACK_S: Final = 10.0
"""A lease lasts so much longer than a check may take."""


@dataclass(slots=True)
class Evaluator:
    """Evaluates watches; one at a time each, many side by side."""

    store: WatchStore
    verifiers: Verifiers
    authorizer: Authorizer
    clock: Clock
    now: Callable[[], datetime]
    """The instant watches live in; never goes back within a process."""
    random: Random = field(default_factory=Random)

    def lease_s(self, watch: Watch) -> float:
        """How long a lease of it has to last."""
        return 2 * self.verifiers.limit_s(watch.verifier) + LEASE_SLACK_S

    async def evaluate(self, lease: Lease) -> Decision | None:
        """Check a leased watch and commit what comes of it; None when it was not decided on any more.

        The target is not read before its owner may still see it. At the deadline a check that runs is given
        up for the final one.
        """
        if not await self.may_check(lease.watch):
            return None
        seen = await self._observe(lease.watch)
        return await self.commit(lease, seen)

    async def may_check(self, watch: Watch) -> bool:
        """Whether its owner may still see what it watches; ends it when not."""
        owner = self.authorizer.owner_of(watch)
        if owner is not None:
            try:
                self.authorizer.check(owner, Action.CHECK, watch)
            except (Forbidden, WatchNotFound):
                pass
            else:
                return True
        now = self.now()
        await anyio.to_thread.run_sync(self.store.change, watch.id, partial(_revoked, now=now), now)
        return False

    async def commit(
        self, lease: Lease, seen: Observation, prepare: Callable[[Watch], Watch | None] = lambda watch: watch
    ) -> Decision | None:
        """Decide on the watch as it stands.

        Args:
            lease: Of this evaluation.
            seen: What the check said.
            prepare: Changes the watch before the decision, or withdraws it with None.
        """
        now, jitter = self.now(), self.random.random()

        def work(stands: Watch) -> Decision | None:
            ready = prepare(stands)
            return None if ready is None else decide(ready, seen, now, jitter=jitter)

        return await anyio.to_thread.run_sync(self.store.settle, lease, seen, work, now)

    async def _observe(self, watch: Watch) -> Observation:
        now = self.now()
        if watch.expires_at is None:
            return await self.verifiers.observe(watch, now)
        if now < watch.expires_at:
            seen = list[Observation]()
            left_s = (watch.expires_at - now).total_seconds()
            await ends_within(self.clock, left_s, _collect(lambda: self.verifiers.observe(watch, now), seen))
            if seen:
                return seen[0]
        if policy(watch.kind).at_expiry is AtExpiry.NEVER_FIRES:
            return Observation(Outcome.PENDING, "expired", "", self.now())
        return await self.verifiers.observe(watch, self.now())


def _collect(work: Callable[[], Awaitable[Observation]], into: list[Observation]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        into.append(await work())

    return run


def _revoked(stands: Watch, now: datetime) -> Decision | None:
    return end(stands, EndReason.ACCESS_REVOKED, now) if stands.status is Status.ACTIVE else None
