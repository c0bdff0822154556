"""Ids that were met: a few in memory, more on disk, so that a recording of any length takes no more memory."""

import sqlite3
from hashlib import blake2b

_IN_MEMORY = 20_000


class MetIds:
    """Says of each id whether it was met before."""

    def __init__(self) -> None:
        self._ids: set[bytes] = set()
        self._disk: sqlite3.Connection | None = None

    def add(self, event_id: str) -> bool:
        """Whether it is new."""
        digest = blake2b(event_id.encode(errors="surrogatepass"), digest_size=16).digest()
        if self._disk is not None:
            return self._disk.execute("INSERT OR IGNORE INTO met VALUES (?)", (digest,)).rowcount == 1
        size = len(self._ids)
        self._ids.add(digest)
        is_new = len(self._ids) > size
        if len(self._ids) > _IN_MEMORY:
            self._disk = self._moved()
        return is_new

    def close(self) -> None:
        """Let go of the file."""
        if self._disk is not None:
            self._disk.close()

    def _moved(self) -> sqlite3.Connection:
        # Without a name it is a file that nobody else sees and that goes with the connection.
        disk = sqlite3.connect("", isolation_level=None)
        disk.execute("PRAGMA journal_mode = OFF")
        disk.execute("CREATE TABLE met (id BLOB PRIMARY KEY) WITHOUT ROWID")
        disk.execute("BEGIN")
        disk.executemany("INSERT INTO met VALUES (?)", ((digest,) for digest in self._ids))
        self._ids.clear()
        return disk
