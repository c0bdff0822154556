"""Stores of watches, on SQLite and PostgreSQL, and a server over a run of the demo."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.serving import Server, a_server, demo
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The only execution."""
    return demo(tmp_path / "executions")


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    """Serves it; whoever reaches it is the operator."""
    async with a_server(root.parent) as made:
        yield made
