"""What a decision sets in motion: rows that say who is to be told what (spec watches 6)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from hankwatch.watches.decide import Decision, Raised
from hankwatch.watches.policies import Evidence, policy
from hankwatch.watches.watch import Signal, Watch


class Channel(StrEnum):
    """How somebody is told."""

    EVENT = "event"
    """A ``watch.*`` event in the journal of the watch's home."""
    IN_APP = "in_app"
    """A notification that is listed until it is read."""
    HOOK = "hook"
    WAKE = "wake"
    """A turn in the session."""


class DeliveryStatus(StrEnum):
    """Where a delivery is in its life."""

    PENDING = "pending"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    HELD = "held"
    """Over the day's limit of its session."""
    SUPPRESSED = "suppressed"
    """The right to be told is gone; the row is the receipt."""
    DEAD = "dead"
    """Tried too often."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing to be told, once."""

    id: str
    """``<channel>:<watch>:<generation>:<fire>``; what is no fire has ``<signal>.<version of the watch>`` at its end."""
    watch_id: str
    channel: Channel
    signal: Signal
    tenant: str
    owner: str
    session: str | None
    """A wake: where the turn runs."""
    home: str | None
    created_at: datetime
    content: Mapping[str, Any]
    """JSON: kind, condition, generation, fire, reason, value, evidence, prompt, depth; digests only where the
    policy keeps no text."""
    status: DeliveryStatus = DeliveryStatus.PENDING
    reason: str | None = None
    """Why it is held, suppressed, dead or was tried again."""
    attempts: int = 0
    next_attempt_at: datetime | None = None
    finished_at: datetime | None = None


def reactions(decision: Decision, version: int, now: datetime) -> Iterator[Delivery]:
    """The deliveries of a decision, in order.

    Args:
        decision: What was decided.
        version: The number of this change of the watch's row; makes the ids of what is no fire its own.
        now: The instant of the decision.
    """
    for raised in decision.raised:
        yield from told(decision.watch, raised, version, now)


def told(watch: Watch, raised: Raised, version: int, now: datetime) -> Iterator[Delivery]:
    """The deliveries of one signal of a watch."""
    content = _content(watch, raised)
    key = str(raised.fire) if raised.fire is not None else f"{raised.signal}.{version}"
    for channel in _channels(watch, raised.signal):
        yield Delivery(
            id=f"{channel}:{watch.id}:{watch.generation}:{key}",
            watch_id=watch.id,
            channel=channel,
            signal=raised.signal,
            tenant=watch.tenant,
            owner=watch.owner,
            session=(watch.run_session or watch.session) if channel is Channel.WAKE else watch.session,
            home=watch.home,
            created_at=now,
            content=content,
        )


def _channels(watch: Watch, signal: Signal) -> Iterator[Channel]:
    if watch.home is not None:  # only the journal of the home takes its events
        yield Channel.EVENT
    if Channel.HOOK in watch.actions:
        yield Channel.HOOK
    if signal in watch.notify_on:
        if Channel.IN_APP in watch.actions:
            yield Channel.IN_APP
        if Channel.WAKE in watch.actions and (watch.run_session or watch.session):
            yield Channel.WAKE


def _content(watch: Watch, raised: Raised) -> dict[str, Any]:
    content = {
        "kind": watch.kind.value,
        "condition": watch.condition,
        "generation": watch.generation,
        "fire": raised.fire,
        "reason": raised.reason,
        "prompt": watch.run_prompt,
        "depth": watch.depth,
    }
    if policy(watch.kind).evidence is not Evidence.DIGESTS:
        content |= {"value": raised.value, "evidence": raised.evidence}
    return content
