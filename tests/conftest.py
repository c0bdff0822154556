"""What every test gets: one event-loop backend and the project's fixture folder."""

import gc
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

SLOW_FOLDERS = ("contract", "e2e", "fault", "property", "scenario")
"""What starts processes and servers, carries out whole runs, or draws many examples: left out by `make test-fast`."""

settings.register_profile("suite", deadline=None, max_examples=100)
settings.load_profile("suite")


def pytest_collection() -> None:
    gc.disable()  # what is collected stays to the end: looking for garbage in it takes a second each time


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = tuple(f"tests/{folder}/" for folder in SLOW_FOLDERS)
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _fresh_log() -> Iterator[None]:
    """A command that a test runs in its own process configures the log for that process; no other test notices."""
    yield
    logger = logging.getLogger("hankwatch")
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The project's ``fixtures/`` folder."""
    return Path(__file__).parent.parent / "fixtures"
