"""The engines that poll a store, and whether everything in it is polled (spec watches 7, "Liveness")."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, insert, select, update

from hankwatch.watches.database import Database
from hankwatch.watches.outbox import instant, millis
from hankwatch.watches.scope import Scope, in_scope
from hankwatch.watches.tables import engines, watches
from hankwatch.watches.watch import Status

_ENGINE_IS_GONE_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether watches are being polled."""

    last_loop_at: datetime | None
    """Of the engine that looked last; None when none ever did."""
    most_overdue: str | None
    """Id of the active watch that has waited longest past its instant."""
    lag_s: float
    """How long; 0 when nothing is overdue."""


class EngineRoll:
    """The engines of a store; methods block for the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, engine_id: str, scope: str, now: datetime) -> None:
        """An engine says that it looks; those that have not for a day are forgotten."""
        values = {"scope": scope, "looped_ms": millis(now)}
        with self._database.writing(durable=False) as connection:
            connection.execute(delete(engines).where(engines.c.looped_ms < millis(now) - _ENGINE_IS_GONE_MS))
            if not connection.execute(update(engines).where(engines.c.id == engine_id).values(**values)).rowcount:
                connection.execute(insert(engines).values(id=engine_id, **values))

    def retire(self, engine_id: str) -> None:
        """An engine has ended in order."""
        with self._database.writing(durable=False) as connection:
            connection.execute(delete(engines).where(engines.c.id == engine_id))

    def liveness(self, scope: Scope, now: datetime) -> Liveness:
        """Who looked last, and what waits past its instant."""
        overdue = (
            select(watches.c.id, watches.c.due_ms)
            .where(watches.c.status == Status.ACTIVE.value, in_scope(scope), watches.c.due_ms < millis(now))
            .order_by(watches.c.due_ms)
            .limit(1)
        )
        with self._database.reading() as connection:
            looped = connection.execute(select(func.max(engines.c.looped_ms))).scalar()
            most = connection.execute(overdue).first()
        return Liveness(
            None if looped is None else instant(looped),
            None if most is None else most.id,
            0.0 if most is None else (millis(now) - most.due_ms) / 1000,
        )
