"""One evaluation from lease to commit (spec watches 3, "Order of one evaluation")."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.core.errors import Forbidden, StoreFailed, WatchNotFound
from hankwatch.watches.authority import Action, Authorizer
from hankwatch.watches.decide import Decision, decide, end
from hankwatch.watches.metrics import WatchMetrics
from hankwatch.watches.policies import AtExpiry, policy
from hankwatch.watches.store import Lease, WatchStore
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import EndReason, Observation, Outcome, Status, Watch

_LOG = logging.getLogger(__name__)
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
    metrics: WatchMetrics = field(default_factory=WatchMetrics)
    random: Random = field(default_factory=Random)
    on_decision: Callable[[Decision], None] = lambda _: None
    """Told of each decision, once it is committed."""

    def lease_s(self, watch: Watch) -> float:
        """How long a lease of it has to last."""
        return 2 * self.verifiers.limit_s(watch.verifier) + LEASE_SLACK_S

    async def evaluate(self, lease: Lease) -> Decision | None:
        """Check a leased watch and commit what comes of it; None when it was not decided on any more.

        The target is not read before its owner may still see it, nor at the deadline of a kind that then never
        fires.
        """
        watch, now = lease.watch, self.now()
        if not await self.may_check(watch):
            return None
        is_over = watch.expires_at is not None and now >= watch.expires_at
        if is_over and policy(watch.kind).at_expiry is AtExpiry.NEVER_FIRES:
            return await self.commit(lease, Observation(Outcome.PENDING, "expired", "", now))
        try:
            if lease.is_taken_over:
                await self.verifiers.end_leftovers(watch)
            seen = await self.verifiers.observe(watch, now)
        except anyio.get_cancelled_exc_class():  # else nobody checks it before the lease is over
            with anyio.CancelScope(shield=True):
                await self._give_back(lease)
            raise
        return await self.commit(lease, seen)

    async def _give_back(self, lease: Lease) -> None:
        try:
            await anyio.to_thread.run_sync(self.store.release, lease)
        except StoreFailed as error:
            _LOG.warning("watch %s waits for the end of its lease: %s", lease.watch.id, error)

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

        decision = await anyio.to_thread.run_sync(self.store.settle, lease, seen, work, now)
        self.metrics.note(decision)
        if decision is not None:
            self.on_decision(decision)
        return decision


def _revoked(stands: Watch, now: datetime) -> Decision | None:
    return end(stands, EndReason.ACCESS_REVOKED, now) if stands.status is Status.ACTIVE else None
