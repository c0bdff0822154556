"""What a decision sets in motion is put in the outbox with it (spec watches 6)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, func, insert, select

from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus
from hankwatch.watches.outbox import held_notice, millis, row_of, tell_of
from hankwatch.watches.tables import deliveries

_LIMITED: Final = frozenset({Channel.WAKE, Channel.IN_APP, Channel.HOOK})
_NEVER_WENT_OUT: Final = (DeliveryStatus.HELD.value, DeliveryStatus.SUPPRESSED.value)


def post(connection: Connection, new: Iterable[Delivery], now: datetime, *, limit: int) -> None:
    """Add deliveries; what a session gets over its day's limit is held, with one notice a day."""
    for delivery in new:
        if not _is_over(connection, delivery, now, limit):
            connection.execute(insert(deliveries).values(row_of(delivery)))
            continue
        held = replace(delivery, status=DeliveryStatus.HELD, reason="day-limit", finished_at=now)
        connection.execute(insert(deliveries).values(row_of(held)))
        tell_of(connection, held, now)
        notice = held_notice(delivery, limit)
        if not connection.execute(select(deliveries.c.id).where(deliveries.c.id == notice.id)).first():
            connection.execute(insert(deliveries).values(row_of(notice)))


def _is_over(connection: Connection, delivery: Delivery, now: datetime, limit: int) -> bool:
    """Wakes count whatever they tell; of what else is told only fires do."""
    is_limited = delivery.channel is Channel.WAKE or delivery.content.get("fire") is not None
    if delivery.session is None or delivery.channel not in _LIMITED or not is_limited:
        return False
    if connection.dialect.name == "postgresql":  # two decisions for one session count one after the other
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(delivery.session))))
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    query = select(func.count()).where(
        deliveries.c.channel == delivery.channel.value,
        deliveries.c.tenant == delivery.tenant,
        deliveries.c.session == delivery.session,
        deliveries.c.created_ms >= millis(today),
        deliveries.c.created_ms < millis(today + timedelta(days=1)),
        deliveries.c.status.not_in(_NEVER_WENT_OUT),
    )
    return int(connection.execute(query).scalar() or 0) >= limit
