"""The one schema of the watch store, on SQLite and PostgreSQL alike (spec watches 7).

A watch's whole record is one JSON text; what is looked for stands in columns beside it. Instants are epoch
milliseconds, so both databases order them alike.
"""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, String, Table, Text

SCHEMA_VERSION = 2
UPGRADED = frozenset({1})
"""Versions that become this one by the tables they lack."""
PAST = "past generation"
"""Name of the highest generation of all that was deleted."""

metadata = MetaData()

meta = Table(
    "hankwatch_meta",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", String(64), nullable=False),
)

watches = Table(
    "hankwatch_watches",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("session", Text),
    Column("home", Text),
    Column("kind", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("identity", String(32), nullable=False),
    Column("applied", Boolean, nullable=False),  # belongs to its owner's applied set
    Column("verifier", String(16), nullable=False),
    Column("counts", Boolean, nullable=False),  # against the caps; an operator's does not
    Column("due_ms", BigInteger),  # the earlier of next check and deadline; null: not polled
    Column("expires_ms", BigInteger),
    Column("touched_ms", BigInteger, nullable=False),  # armed or last checked; later than now: the clock went back
    Column("finished_ms", BigInteger),
    Column("version", Integer, nullable=False),  # goes up with every change of the record
    Column("fence", BigInteger, nullable=False),  # goes up with every lease
    Column("leased_until_ms", BigInteger, nullable=False),  # 0: nobody checks it
    Column("record", Text, nullable=False),
    Index("hankwatch_watches_due", "status", "due_ms"),
    Index("hankwatch_watches_identity", "identity"),
    Index("hankwatch_watches_session", "tenant", "session"),
)

evaluations = Table(
    "hankwatch_evaluations",
    metadata,
    Column("watch_id", String(128), primary_key=True),
    Column("number", Integer, primary_key=True),  # the watch's version that it made
    Column("generation", Integer, nullable=False),
    Column("observed_ms", BigInteger, nullable=False),
    Column("late_ms", BigInteger, nullable=False),
    Column("outcome", String(24), nullable=False),
    Column("reason", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("detail", Text, nullable=False),  # JSON: text, evidence, error; empty where no text is kept
)

deliveries = Table(
    "hankwatch_deliveries",
    metadata,
    Column("id", String(256), primary_key=True),
    Column("watch_id", String(128), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("session", Text),
    Column("home", Text),
    Column("channel", String(8), nullable=False),
    Column("signal", String(16), nullable=False),
    Column("status", String(12), nullable=False),
    Column("reason", Text),
    Column("attempts", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Column("finished_ms", BigInteger),
    Column("fence", BigInteger, nullable=False),
    Column("leased_until_ms", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
    Index("hankwatch_deliveries_due", "status", "channel", "due_ms"),
    Index("hankwatch_deliveries_session", "tenant", "session", "created_ms"),
    Index("hankwatch_deliveries_watch", "watch_id"),
)

engines = Table(
    "hankwatch_engines",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("scope", Text, nullable=False),  # what it checks, for people
    Column("looped_ms", BigInteger, nullable=False),
)

signals = Table(
    "hankwatch_signals",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("signal", String(16), nullable=False),
    Column("watch_id", String(128), nullable=False),
    Column("record", Text, nullable=False),  # the watch as it was then
)

settings = Table(
    "hankwatch_settings",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),  # JSON
    Column("set_by", Text, nullable=False),
    Column("set_ms", BigInteger, nullable=False),
)
