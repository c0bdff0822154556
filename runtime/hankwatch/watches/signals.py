"""What the watches of a store told last, in the order it was committed: for whoever looks at all of them at once.

Deliveries say who is told; a home's journal has its own watches. Here stands every signal of every watch, for a short
while, so that one look each second serves all that want to know.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select

from hankwatch.core.errors import BadLine
from hankwatch.watches.codec import decode, encode
from hankwatch.watches.database import Database
from hankwatch.watches.decide import Raised
from hankwatch.watches.tables import signals, watches
from hankwatch.watches.watch import Signal, Watch

KEPT: Final = 2_000
"""Signals that stay; what is older is in deliveries and journals."""
_PRUNED_EVERY: Final = 100
OVERLAP: Final = 200
"""Transactions commit in another order than they take numbers: so far back a look goes again."""

Tally = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """One signal."""

    number: int
    """Grows; not without gaps."""
    signal: Signal
    watch: Watch
    """As it was then."""


class SignalFeed:
    """Reads the feed; methods block for the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest(self) -> int:
        """The highest number so far."""
        with self._database.reading() as connection:
            return int(connection.execute(select(func.max(signals.c.number))).scalar() or 0)

    def behind(self, number: int) -> list[int]:
        """The numbers above one, in order."""
        with self._database.reading() as connection:
            query = select(signals.c.number).where(signals.c.number > number).order_by(signals.c.number)
            return list(connection.scalars(query))

    def read(self, numbers: Collection[int]) -> list[Told]:
        """These signals, in order; one whose record cannot be read is left out."""
        if not numbers:
            return []
        query = select(signals).where(signals.c.number.in_(numbers)).order_by(signals.c.number)
        found = list[Told]()
        with self._database.reading() as connection:
            for row in connection.execute(query).all():
                try:
                    found.append(Told(row.number, Signal(row.signal), decode(row.record)))
                except BadLine:
                    continue
        return found

    def tally(self) -> Tally:
        """Differs once a watch was added, checked, ended or deleted; answered by an index alone."""
        query = (
            select(watches.c.status, func.count(), func.coalesce(func.sum(watches.c.due_ms), 0))
            .group_by(watches.c.status)
            .order_by(watches.c.status)
        )
        with self._database.reading() as connection:
            return tuple((row[0], row[1], int(row[2])) for row in connection.execute(query))


def note(connection: Connection, watch: Watch, raised: Iterable[Raised]) -> None:
    """Add what a change of a watch tells, in its transaction."""
    record = encode(watch)
    for one in raised:
        query = insert(signals).values(signal=one.signal.value, watch_id=watch.id, record=record)
        number: int = connection.execute(query.returning(signals.c.number)).scalar_one()
        if number % _PRUNED_EVERY == 0:
            connection.execute(delete(signals).where(signals.c.number <= number - KEPT))
