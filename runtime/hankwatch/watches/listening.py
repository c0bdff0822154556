"""Watches about which something happened, until each has been checked (spec watches 7)."""

import logging
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
from hankwatch.watches.watch import MAX_EVIDENCE_CHARS, Observation, Outcome, Watch

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

    def hear(self) -> bool:
        """Read on in every journal; blocks for files and the store.

        Returns:
            Whether there is more to read: others may have their turn first.

        Raises:
            StoreFailed: the watches cannot be listed.
        """
        has_more = False
        for feed in self.feeds:
            feed.follow(self.evaluator.store.listeners(str(feed.home)), self.evaluator.store.read_all)
            failures = list[Exception]()
            with contain(failures.append):
                for tripped in feed.read():
                    self._wait(tripped)
                has_more |= feed.has_more
            for failure in failures:
                _LOG.warning("%s cannot be read: %s", feed.journal, failure)
        live = set().union(*(feed.followed for feed in self.feeds))
        for of_watches in (self._waiting, self._heard_at):
            for watch_id in of_watches.keys() - live:
                del of_watches[watch_id]
        return has_more

    def ready(self, now: datetime, limit: int) -> list[tuple[Lease, Tripped]]:
        """Lease what may be checked now, the longest waiting first; blocks for the store."""
        found = list[tuple[Lease, Tripped]]()
        for watch_id, tripped in list(self._waiting.items()):
            heard_at, monotonic = self._heard_at.get(watch_id), self.clock.monotonic()
            if heard_at is not None and monotonic - heard_at < COALESCE_S:
                continue
            lease = self.evaluator.store.take_one(watch_id, now, lease_s=self.evaluator.lease_s)
            if lease is not None:
                del self._waiting[watch_id]
                self._heard_at[watch_id] = monotonic
                found.append((lease, tripped))
                if len(found) == limit:
                    break
        return found

    def pop(self, watch_id: str) -> Tripped | None:
        """What happened to a watch whose time is over, so that its last check is about that."""
        return self._waiting.pop(watch_id, None)

    async def fire(self, lease: Lease, tripped: Tripped) -> Decision | None:
        """Decide on an event that matched; None when the watch had seen it before.

        Raises:
            StoreFailed: it could not be committed; the event waits again.
        """

        def prepare(stands: Watch) -> Watch | None:
            is_new = tripped.event.cursor > stands.cursor and tripped.generation == stands.generation
            return replace(stands, cursor=tripped.event.cursor) if is_new else None

        try:
            if not await self.evaluator.may_check(lease.watch):
                return None
            return await self.evaluator.commit(lease, _seen(tripped, self.evaluator.now()), prepare)
        except Exception:
            self._wait(tripped)
            raise

    def _wait(self, tripped: Tripped) -> None:
        other = self._waiting.get(tripped.watch_id)
        if other is not None and other.generation == tripped.generation:
            latest = max(other, tripped, key=lambda one: one.event.cursor)
            tripped = replace(latest, count=other.count + tripped.count)
        self._waiting[tripped.watch_id] = tripped


def _seen(tripped: Tripped, now: datetime) -> Observation:
    event = tripped.event
    value = {"eventId": event.id, "type": event.type, "count": tripped.count}
    shown = orjson.dumps(event.data).decode("utf-8", "replace")[:MAX_EVIDENCE_CHARS]
    said = f"{event.type} at {event.timestamp}"
    return Observation(Outcome.SATISFIED, "event", said, now, value, digest(value), shown)
