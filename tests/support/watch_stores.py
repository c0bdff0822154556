"""A store of watches on SQLite or PostgreSQL, empty and one's own."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest
from tests.support.watches import a_watch, at

from hankwatch.watches.decide import Decision, decide
from hankwatch.watches.scope import Scope
from hankwatch.watches.specs import CommandSpec
from hankwatch.watches.store import Lease, WatchStore
from hankwatch.watches.watch import Observation, Watch

ALL = Scope(homes=None, homeless=True)
POSTGRES: Final = os.environ.get("HANKWATCH_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


@contextmanager
def store_url(backend: str, folder: Path) -> Iterator[str]:
    """The address of an empty store; a PostgreSQL one is a schema that is dropped afterwards."""
    if backend == "sqlite":
        yield f"sqlite:///{folder / 'watches.db'}"
        return
    schema = f"hw_{uuid.uuid4().hex}"
    try:
        admin = psycopg.connect(POSTGRES, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL at 127.0.0.1:5432: {str(error).splitlines()[0]}")
    with admin:
        admin.execute(f'CREATE SCHEMA "{schema}"')
        try:
            yield f"{POSTGRES}?options=-csearch_path%3D{schema}"
        finally:
            admin.execute(f'DROP SCHEMA "{schema}" CASCADE')
    admin.close()


def armed(store: WatchStore, **fields: object) -> Watch:
    number = fields.pop("number", 1)
    spec = CommandSpec(type="command", command=["check", str(number)])
    watch, _ = store.arm(a_watch(id=f"watch-{number}", verifier=spec, **fields), counts=True, now=at(0))  # type: ignore[arg-type]
    return watch


def leased(store: WatchStore, seconds: float = 0) -> list[Lease]:
    return store.take(ALL, at(seconds), limit=10, lease_s=lambda _: 30)


def settled(store: WatchStore, lease: Lease, seen: Observation, seconds: float) -> Decision | None:
    return store.settle(lease, seen, lambda watch: decide(watch, seen, at(seconds)), at(seconds))
