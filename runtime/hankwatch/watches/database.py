"""A connection to the store's database: transactions that mean the same on SQLite and PostgreSQL."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from hankwatch.core.errors import StoreFailed, UsageError
from hankwatch.watches.tables import PAST, SCHEMA_VERSION, UPGRADED, meta, metadata

T = TypeVar("T")
CHANNEL: Final = "hankwatch"
"""On which PostgreSQL says that something is to be looked at."""
_BUSY_S: Final = 10.0
_ATTEMPTS: Final = 8
"""Of a serializable transaction that another one got in the way of."""


class Database:
    """Opens, makes and versions the schema; used from any thread.

    Args:
        url: ``sqlite:///PATH`` or ``postgresql+psycopg://…``; a plain path means SQLite.

    Raises:
        StoreFailed: it cannot be opened.
        UsageError: the address is none, or the schema is of another version.
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)
        self.shown: str = self._engine.url.render_as_string(hide_password=True)
        """Its address, for people."""
        self.address: str = self._engine.url.set(drivername=self._engine.dialect.name).render_as_string(
            hide_password=False
        )
        """Its address, with its password, for another connection."""
        self.is_postgres: bool = self._engine.dialect.name == "postgresql"
        try:
            with self.failures():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give back every connection."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that changes nothing."""
        with self.failures(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction that holds what it selects for update; on SQLite the only writer from its start.

        What is not durable survives kill -9 too, but on SQLite not the loss of power: enough for leases.
        """
        options = {"writes": True, "durable": durable}
        with self.failures(), self._engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    def serializable(self, work: Callable[[Connection], T]) -> T:
        """``work`` in a transaction that is as if alone; tried again when another one got in its way."""
        with self.failures():
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    options: dict[str, Any] = {"writes": True}
                    if self.is_postgres:
                        options["isolation_level"] = "SERIALIZABLE"
                    with self._engine.connect().execution_options(**options) as connection, connection.begin():
                        return work(connection)
                except DBAPIError as error:
                    if attempt == _ATTEMPTS or not _is_conflict(error):
                        raise
                    time.sleep(0.005 * 2**attempt)  # in a worker thread; another transaction is about to end
        raise AssertionError("unreachable")

    def announce(self, connection: Connection) -> None:
        """Let other processes look at once when this transaction commits; without PostgreSQL they look each second."""
        if self.is_postgres:
            connection.exec_driver_sql(f"NOTIFY {CHANNEL}")  # no payload: the rows are the truth

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Database errors as ours."""
        try:
            yield
        except SQLAlchemyError as error:
            raise StoreFailed(self.shown, str(getattr(error, "orig", None) or error).strip()) from error

    def _prepare(self) -> None:
        def work(connection: Connection) -> str:
            if self.is_postgres:  # two that create the same table at once get in each other's way
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4729153681)")
            metadata.create_all(connection)
            found = connection.execute(select(meta.c.value).where(meta.c.name == "schema")).scalar()
            if found is None:
                connection.execute(insert(meta).values(name="schema", value=str(SCHEMA_VERSION)))
                connection.execute(insert(meta).values(name=PAST, value="0"))
            elif found in {str(version) for version in UPGRADED}:
                connection.execute(update(meta).where(meta.c.name == "schema").values(value=str(SCHEMA_VERSION)))
                return str(SCHEMA_VERSION)
            return str(found or SCHEMA_VERSION)

        with self.writing() as connection:
            version = work(connection)
        if version != str(SCHEMA_VERSION):
            raise UsageError(
                f"{self.shown} holds watches of schema {version}; this version works with {SCHEMA_VERSION}",
                hint="use the hankwatch that made it, or another store (watches.store)",
            )


def _engine(url: str) -> Engine:
    try:
        address = make_url(url if "://" in url else f"sqlite:///{Path(url).expanduser()}")
    except SQLAlchemyError as error:
        raise UsageError(f"{url!r} is no database address", hint="sqlite:///PATH or postgresql://HOST/NAME") from error
    if address.get_backend_name() == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
        try:
            return create_engine(address, pool_size=4, max_overflow=4, pool_pre_ping=True)
        except ModuleNotFoundError as error:
            raise UsageError(
                "watches in PostgreSQL need psycopg", hint="install it with `pip install 'hankwatch[postgres]'`"
            ) from error
    if address.get_backend_name() != "sqlite":
        raise UsageError(f"{address.get_backend_name()} cannot hold watches", hint="SQLite and PostgreSQL can")
    if address.database:
        try:
            Path(address.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreFailed(str(address.database), str(error)) from error
    engine = create_engine(address, connect_args={"check_same_thread": False, "timeout": _BUSY_S})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _on_begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    writes = options.get("writes", False)
    if writes:
        connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if options.get('durable', True) else 'NORMAL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _is_conflict(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    return state in {"40001", "40P01"} or (isinstance(error, OperationalError) and "locked" in str(error.orig))
