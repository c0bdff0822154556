"""Deliveries in the store: taken by leases, ended once, listed for whoever asks (spec watches 6)."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, Row, func, insert, or_, select, update

from hankwatch.watches.database import Database
from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus, receipt
from hankwatch.watches.tables import deliveries
from hankwatch.watches.watch import EndReason, Signal

_FIRST_MS: Final = -62_135_510_400_000
_LAST_MS: Final = 253_402_214_400_000
"""The first and the last day that a date can have."""
_LOG = logging.getLogger(__name__)
_ACTS = (Channel.WAKE.value, Channel.HOOK.value)
_OPEN = (DeliveryStatus.PENDING.value, DeliveryStatus.DELIVERING.value)


@dataclass(frozen=True, slots=True)
class DeliveryLease:
    """The right to carry out one delivery, until somebody else takes it."""

    delivery: Delivery
    fence: int


class Outbox:
    """The deliveries of a store; methods block for the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(
        self,
        channel: Channel,
        now: datetime,
        *,
        homes: frozenset[str] | None,
        homeless: bool,
        limit: int,
        lease_s: float,
        session: str | None = None,
    ) -> list[DeliveryLease]:
        """Lease deliveries of a channel that are due, oldest first.

        One that an earlier holder left in the middle is leased again; whoever carries it out looks first
        whether it was done (spec watches 6).
        """
        now_ms = millis(now)
        query = (
            select(deliveries)
            .where(
                deliveries.c.channel == channel.value,
                deliveries.c.status.in_(_OPEN),
                deliveries.c.due_ms <= now_ms,
                deliveries.c.leased_until_ms <= now_ms,
                _at_home(homes, homeless=homeless),
            )
            .order_by(deliveries.c.created_ms, deliveries.c.id)
            .limit(limit)
        )
        if session is not None:
            query = query.where(deliveries.c.session == session)
        with self._database.reading() as connection:  # most looks find nothing, and need not wait for writers
            if connection.execute(query.with_only_columns(deliveries.c.id).limit(1)).first() is None:
                return []
        leases = list[DeliveryLease]()
        with self._database.writing(durable=False) as connection:
            for row in connection.execute(query.with_for_update(skip_locked=True)).all():
                values: dict[str, Any] = {"fence": row.fence + 1}
                if (delivery := read(row)) is None:  # delays no other
                    values |= {"status": DeliveryStatus.DEAD.value, "finished_ms": now_ms, "reason": "unreadable"}
                else:
                    values |= {
                        "leased_until_ms": now_ms + int(lease_s * 1000),
                        "attempts": row.attempts + 1,
                        "status": DeliveryStatus.DELIVERING.value,
                    }
                    leases.append(DeliveryLease(delivery, row.fence + 1))
                connection.execute(update(deliveries).where(deliveries.c.id == row.id).values(**values))
        return leases

    def finish(self, lease: DeliveryLease, status: DeliveryStatus, now: datetime, reason: str | None = None) -> bool:
        """A delivery's end; False when the lease is stale, and nothing has changed."""
        with self._database.writing() as connection:
            done = set_leased(connection, lease, status=status.value, finished_ms=millis(now), reason=reason)
            if done and status is not DeliveryStatus.DELIVERED:
                tell_of(connection, replace(lease.delivery, status=status, reason=reason), now)
        return done

    def retry(self, lease: DeliveryLease, at: datetime, reason: str, *, failed: bool = True) -> bool:
        """Try it again later; False when the lease is stale. Only what failed counts as an attempt."""
        with self._database.writing(durable=False) as connection:
            return set_leased(
                connection,
                lease,
                status=DeliveryStatus.PENDING.value,
                due_ms=millis(at),
                leased_until_ms=0,
                reason=reason,
                attempts=lease.delivery.attempts + failed,
            )

    def withdraw(self, watch_id: str, now: datetime, *, overdue: bool = False) -> bool:
        """Suppress the fires of a cancelled watch that wait; False while somebody has one in hand.

        With ``overdue`` those in hand too: a sink takes no longer than that, so whoever has them has died.
        """
        with self._database.writing() as connection:
            return withdraw(connection, watch_id, EndReason.CANCELLED, now, overdue=overdue)

    def reclaim(self, homes: frozenset[str]) -> None:
        """Take back the leases of whoever died while it held these homes."""
        with self._database.writing(durable=False) as connection:
            connection.execute(update(deliveries).where(deliveries.c.home.in_(sorted(homes))).values(leased_until_ms=0))

    def hasten(self, home: str, now: datetime) -> None:
        """Let the wakes of a home be due whose sessions were busy: one of them is free now."""
        were_busy = (
            deliveries.c.home == home,
            deliveries.c.channel == Channel.WAKE.value,
            deliveries.c.status == DeliveryStatus.PENDING.value,
            deliveries.c.attempts == 0,
            deliveries.c.due_ms > millis(now),
        )
        with self._database.writing() as connection:
            connection.execute(update(deliveries).where(*were_busy).values(due_ms=millis(now)))

    def find(
        self,
        *,
        watch_id: str | None = None,
        tenant: str | None = None,
        owner: str | None = None,
        session: str | None = None,
        home: str | None = None,
        channel: Channel | None = None,
        statuses: Iterable[DeliveryStatus] = tuple(DeliveryStatus),
        limit: int = 1_000,
    ) -> list[Delivery]:
        """The deliveries that fit everything given, newest first."""
        about = {"watch_id": watch_id, "tenant": tenant, "owner": owner, "session": session}
        asked = {**about, "home": home, "channel": channel}
        query = select(deliveries).where(deliveries.c.status.in_([status.value for status in statuses]))
        for name, value in asked.items():
            if value is not None:
                query = query.where(deliveries.c[name] == value)
        query = query.order_by(deliveries.c.created_ms.desc(), deliveries.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [delivery for row in rows if (delivery := read(row)) is not None]

    def tally(self, watch_ids: Collection[str]) -> Counter[tuple[str, str]]:
        """How many deliveries of these watches stand where, by id and status; events of journals are left out."""
        query = (
            select(deliveries.c.watch_id, deliveries.c.status, func.count())
            .where(deliveries.c.watch_id.in_(watch_ids), deliveries.c.channel != Channel.EVENT.value)
            .group_by(deliveries.c.watch_id, deliveries.c.status)
        )
        with self._database.reading() as connection:
            return Counter({(row[0], row[1]): row[2] for row in connection.execute(query)})


def set_leased(connection: Connection, lease: DeliveryLease, **values: Any) -> bool:
    """Change a delivery; False when the lease is stale, and nothing has changed."""
    mine = (deliveries.c.id == lease.delivery.id, deliveries.c.fence == lease.fence)
    return connection.execute(update(deliveries).where(*mine).values(**values)).rowcount > 0


def withdraw(connection: Connection, watch_id: str, reason: str, now: datetime, *, overdue: bool = False) -> bool:
    """Suppress what nobody has in hand; the rows stay as receipts.

    Returns:
        Whether that was all: False while somebody has one in hand, which may yet come back.
    """
    waiting = (
        deliveries.c.watch_id == watch_id,
        deliveries.c.channel.in_(_ACTS),
        deliveries.c.signal != Signal.CANCELLED.value,
        deliveries.c.status.in_(_OPEN),
    )
    in_hand = False
    for row in connection.execute(select(deliveries).where(*waiting).with_for_update()).all():
        is_leased = row.status == DeliveryStatus.DELIVERING.value and row.leased_until_ms > millis(now)
        if is_leased and not overdue:
            in_hand = True
            continue
        ended = {"status": DeliveryStatus.SUPPRESSED.value, "reason": reason, "finished_ms": millis(now)}
        connection.execute(update(deliveries).where(deliveries.c.id == row.id).values(fence=row.fence + 1, **ended))
        if (delivery := read(row)) is not None:
            suppressed = replace(delivery, status=DeliveryStatus.SUPPRESSED, reason=reason, finished_at=now)
            tell_of(connection, suppressed, now)
    return not in_hand


def tell_of(connection: Connection, ended: Delivery, now: datetime) -> None:
    """Let the home's journal say that a delivery did not go out as meant."""
    told = receipt(ended, now)
    if told is not None and not connection.execute(select(deliveries.c.id).where(deliveries.c.id == told.id)).first():
        connection.execute(insert(deliveries).values(row_of(told)))


def held_notice(delivery: Delivery, limit: int) -> Delivery:
    """What is told once a day when a session's wakes are held."""
    return Delivery(
        id=f"in_app:held:{delivery.tenant}:{delivery.session}:{delivery.created_at.astimezone(UTC):%Y-%m-%d}",
        watch_id=delivery.watch_id,
        channel=Channel.IN_APP,
        signal=delivery.signal,
        tenant=delivery.tenant,
        owner=delivery.owner,
        session=delivery.session,
        home=delivery.home,
        created_at=delivery.created_at,
        content={"kind": delivery.content.get("kind"), "reason": "held", "limit": limit},
    )


def row_of(delivery: Delivery) -> dict[str, Any]:
    """A new row."""
    return {
        "id": delivery.id,
        "watch_id": delivery.watch_id,
        "tenant": delivery.tenant,
        "owner": delivery.owner,
        "session": delivery.session,
        "home": delivery.home,
        "channel": delivery.channel.value,
        "signal": delivery.signal.value,
        "status": delivery.status.value,
        "reason": delivery.reason,
        "attempts": 0,
        "created_ms": millis(delivery.created_at),
        "due_ms": millis(delivery.created_at),
        "finished_ms": None if delivery.finished_at is None else millis(delivery.finished_at),
        "fence": 0,
        "leased_until_ms": 0,
        "content": orjson.dumps(delivery.content, option=orjson.OPT_SORT_KEYS).decode(),
    }


def millis(at: datetime) -> int:
    """Epoch milliseconds."""
    return int(at.timestamp() * 1000)


def instant(at_ms: int) -> datetime:
    """The instant, aware, UTC; of a damaged number the nearest there is, so that one row holds up no other."""
    return datetime.fromtimestamp(min(max(at_ms, _FIRST_MS), _LAST_MS) / 1000, UTC)


def read(row: Row[Any]) -> Delivery | None:
    """The delivery of a row; None, said in the log, when it cannot be read."""
    try:
        return _delivery(row, dict(orjson.loads(row.content)))
    except (ValueError, TypeError) as error:
        _LOG.warning("delivery %s is left out: %s", row.id, error)
        return None


def _delivery(row: Row[Any], content: dict[str, Any]) -> Delivery:
    return Delivery(
        id=row.id,
        watch_id=row.watch_id,
        channel=Channel(row.channel),
        signal=Signal(row.signal),
        tenant=row.tenant,
        owner=row.owner,
        session=row.session,
        home=row.home,
        created_at=instant(row.created_ms),
        content=content,
        status=DeliveryStatus(row.status),
        reason=row.reason,
        attempts=row.attempts,
        next_attempt_at=instant(row.due_ms) if row.status in _OPEN else None,
        finished_at=None if row.finished_ms is None else instant(row.finished_ms),
    )


def _at_home(homes: frozenset[str] | None, *, homeless: bool) -> ColumnElement[bool]:
    nowhere = deliveries.c.home.is_(None)
    somewhere = deliveries.c.home.is_not(None) if homes is None else deliveries.c.home.in_(sorted(homes))
    return or_(somewhere, nowhere) if homeless else somewhere
