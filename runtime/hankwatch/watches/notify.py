"""PostgreSQL's word that something is to be looked at. The rows are the truth; this only shortens the poll (spec watches 7)."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from hankwatch.core.clock import Clock
from hankwatch.watches.database import CHANNEL, Database

_LOG = logging.getLogger(__name__)
SHORTEST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 30.0
"""Between two attempts to connect; doubled from the shortest on, and again the shortest after a connection that lasted."""
_KEEPALIVE: Final[dict[str, Any]] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


class Listener:
    """Hears other workers on a connection of its own; ``run`` is called by one task.

    Args:
        database: Without PostgreSQL there is nothing to hear.
        clock: Paces the attempts to connect.
        nudges: Called for each notice, and after each connect for whatever was missed before.
    """

    def __init__(self, database: Database, clock: Clock, nudges: Sequence[Callable[[], None]]) -> None:
        self._database, self._clock, self._nudges = database, clock, nudges
        self.connects = 0
        """How often it has connected."""

    async def run(self) -> None:
        """Hear until cancelled; a connection that ends is made anew, ever later while that fails."""
        if not self._database.is_postgres:
            return
        import psycopg

        wait_s = SHORTEST_WAIT_S
        while True:
            began = self._clock.monotonic()
            try:
                await self._hear()
            except (psycopg.Error, OSError) as error:
                if self._clock.monotonic() - began > LONGEST_WAIT_S:
                    wait_s = SHORTEST_WAIT_S
                _LOG.info("no notices from %s for %g s: %s", self._database.shown, wait_s, error)
            await self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _hear(self) -> None:
        from psycopg import AsyncConnection

        connection = await AsyncConnection.connect(
            self._database.address, autocommit=True, connect_timeout=10, **_KEEPALIVE
        )
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            self.connects += 1
            self._nudge()
            async for _ in connection.notifies():
                self._nudge()

    def _nudge(self) -> None:
        for nudge in self._nudges:
            nudge()
