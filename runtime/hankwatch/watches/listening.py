"""Watches about which something happened, until each has been checked (spec watches 7)."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import orjson

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.watches.codec import digest
from hankwatch.watches.decide import Decision
from hankwatch.watches.evaluator import Evaluator
from hankwatch.watches.feed import Feed, Tripped
from hankwatch.watches.store import Lease
from hankwatch.watches.watch import MAX_EVIDENCE_CHARS, Observation, Outcome, Status, Watch

_LOG = logging.getLogger(__name__)
COALESCE_S: Final = 1.0
"""Least time between two checks of a watch that events ask for; what happens in between is counted."""


@dataclass(slots=True)
class Listening:
    """What the feeds of an engine have told and nobody has acted on yet."""

    evaluator: Evaluator
    feeds: list[Feed]
    clock: Clock
    _waiting: dict[str, Tripped] = field(default_factory=dict)
    _heard_at: dict[str, float] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Something happened that is not acted on yet."""
        return bool(self._waiting)

    def hear(self) -> None:
        """Read on in every journal; blocks for files and the store.

        Raises:
            StoreFailed: the watches cannot be listed.
        """
        live = set[str]()
        for feed in self.feeds:
            watches = self.evaluator.store.find(
                home=str(feed.home), statuses=[Status.ACTIVE], verifiers=["event", "document"]
            )
            live |= {watch.id for watch in watches}
            failures = list[Exception]()
            with contain(failures.append):
                feed.follow(watches)
                for tripped in feed.read():
                    earlier = self._waiting.get(tripped.watch_id)
                    count = tripped.count + (earlier.count if earlier is not None else 0)
                    self._waiting[tripped.watch_id] = replace(tripped, count=count)
            for failure in failures:
                _LOG.warning("%s cannot be read: %s", feed.journal, failure)
        self._waiting = {watch_id: tripped for watch_id, tripped in self._waiting.items() if watch_id in live}

    def ready(self, now: datetime) -> Iterator[tuple[Lease, Tripped]]:
        """Lease what may be checked now; blocks for the store."""
        for watch_id, tripped in list(self._waiting.items()):
            heard_at, monotonic = self._heard_at.get(watch_id), self.clock.monotonic()
            if heard_at is not None and monotonic - heard_at < COALESCE_S:
                continue
            lease = self.evaluator.store.take_one(watch_id, now, lease_s=self.evaluator.lease_s)
            if lease is not None:
                del self._waiting[watch_id]
                self._heard_at[watch_id] = monotonic
                yield lease, tripped

    async def fire(self, lease: Lease, tripped: Tripped) -> Decision | None:
        """Decide on an event that matched; None when the watch had seen it before."""

        def prepare(stands: Watch) -> Watch | None:
            is_new = tripped.event.cursor > stands.cursor and tripped.generation == stands.generation
            return replace(stands, cursor=tripped.event.cursor) if is_new else None

        if not await self.evaluator.may_check(lease.watch):
            return None
        return await self.evaluator.commit(lease, _seen(tripped, self.evaluator.now()), prepare)


def _seen(tripped: Tripped, now: datetime) -> Observation:
    event = tripped.event
    value = {"eventId": event.id, "type": event.type, "count": tripped.count}
    shown = orjson.dumps(event.data).decode("utf-8", "replace")[:MAX_EVIDENCE_CHARS]
    said = f"{event.type} at {event.timestamp}"
    return Observation(Outcome.SATISFIED, "event", said, now, value, digest(value), shown)
