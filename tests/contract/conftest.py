"""Stores of watches, on SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.watch_stores import store_url

from hankwatch.watches.database import Database
from hankwatch.watches.store import WatchStore


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with store_url(request.param, tmp_path) as address:
        yield address


@pytest.fixture
def store(url: str) -> Iterator[WatchStore]:
    database = Database(url)
    yield WatchStore(database)
    database.close()
