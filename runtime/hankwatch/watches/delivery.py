"""What a decision sets in motion: rows that say who is to be told what (spec watches 6)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Any, Final

from hankwatch.events.observers import (
    WatchArmed,
    WatchBroken,
    WatchCancelled,
    WatchDelivery,
    WatchExpired,
    WatchFlapping,
    WatchImpossible,
    WatchMet,
    WatchRecovered,
    WatchSignal,
    WatchStalled,
    WatchUpdated,
    WatchValueChanged,
)
from hankwatch.events.payload import Payload
from hankwatch.watches.codec import canonical, digest
from hankwatch.watches.decide import Decision, Raised
from hankwatch.watches.policies import Evidence, policy
from hankwatch.watches.watch import Signal, Watch

MAX_VALUE_BYTES: Final = 8_000
"""Of a value that is told, as JSON."""


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


class Woken(Enum):
    """What a session says to a wake."""

    ACCEPTED = auto()
    """It is journaled and will run, or did before."""
    BUSY = auto()
    """Later."""
    GONE = auto()
    """There is no such session, and never will be."""


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


def receipt(ended: Delivery, now: datetime) -> Delivery | None:
    """The event that says that a delivery did not go out as meant; None when no journal takes it."""
    if ended.home is None or ended.channel is Channel.EVENT:
        return None
    said = {"id": ended.id, "channel": ended.channel.value, "status": ended.status.value, "reason": ended.reason}
    return replace(
        ended,
        id=f"{Channel.EVENT}:{ended.status}:{ended.id}",
        channel=Channel.EVENT,
        created_at=now,
        content={"kind": ended.content.get("kind"), "delivery": said},
        status=DeliveryStatus.PENDING,
        reason=None,
        attempts=0,
        finished_at=None,
    )


def payload_of(delivery: Delivery) -> Payload:
    """The event that an ``EVENT`` delivery puts into the journal of its home."""
    content = delivery.content
    if (about := content.get("delivery")) is not None:
        return WatchDelivery(
            watch_id=delivery.watch_id,
            delivery_id=about["id"],
            channel=about["channel"],
            status=about["status"],
            reason=about["reason"] or "",
        )
    names = ("kind", "condition", "generation", "fire", "reason", "value", "evidence")
    told: dict[str, Any] = {name: content[name] for name in names if content.get(name) is not None}
    if delivery.session is not None:
        told["session"] = delivery.session
    return _PAYLOADS[delivery.signal](watch_id=delivery.watch_id, delivery_id=delivery.id, **told)


_PAYLOADS: Final[Mapping[Signal, type[WatchSignal]]] = {
    Signal.ARMED: WatchArmed,
    Signal.UPDATED: WatchUpdated,
    Signal.MET: WatchMet,
    Signal.CHANGED: WatchValueChanged,
    Signal.IMPOSSIBLE: WatchImpossible,
    Signal.EXPIRED: WatchExpired,
    Signal.CANCELLED: WatchCancelled,
    Signal.STALLED: WatchStalled,
    Signal.BROKEN: WatchBroken,
    Signal.RECOVERED: WatchRecovered,
    Signal.FLAPPING: WatchFlapping,
}


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
        content |= {"value": _kept(raised.value), "evidence": raised.evidence}
    return content


def _kept(value: Any) -> Any:
    """A value that is told; a large one is named by its digest."""
    written = canonical(value)
    return value if len(written) <= MAX_VALUE_BYTES else {"digest": digest(value), "bytes": len(written)}
