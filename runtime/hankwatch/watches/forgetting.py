"""Watches that are deleted, so that nothing of a later one is mistaken for theirs."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select, update

from hankwatch.watches.rows import rows_of, watch_of
from hankwatch.watches.tables import PAST, deliveries, evaluations, meta, watches


def forget(connection: Connection, ids: Sequence[str]) -> int:
    """Delete watches with all that is theirs; how many there were.

    What is armed afterwards has a higher generation, so no delivery id ever comes twice: a session that has
    accepted one would take the other for done.
    """
    rows = rows_of(connection, ids)
    past = max((watch_of(connection, row).generation for row in rows), default=0)
    stands = connection.execute(select(meta.c.value).where(meta.c.name == PAST).with_for_update()).scalar()
    if past > int(stands or 0):
        connection.execute(update(meta).where(meta.c.name == PAST).values(value=str(past)))
    for row in rows:
        for table, key in ((watches, "id"), (evaluations, "watch_id"), (deliveries, "watch_id")):
            connection.execute(delete(table).where(table.c[key] == row.id))
    return len(rows)


def past_generation(connection: Connection) -> int:
    """The highest generation of all that was ever deleted; new watches begin above it."""
    past = connection.execute(select(meta.c.value).where(meta.c.name == PAST)).scalar()
    return int(past or 0)
