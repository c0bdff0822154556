"""What every test gets: one event-loop backend and the project's fixture folder."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None, max_examples=100)
settings.load_profile("suite")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The project's ``fixtures/`` folder."""
    return Path(__file__).parent.parent / "fixtures"
