"""What the tests with real agent programs share."""

from collections.abc import Iterator

import pytest
from tests.support.agent_model_server import AgentModelServer, agent_model_server
from tests.support.real_agents import SETUPS, find


@pytest.fixture(params=SETUPS)
def name(request: pytest.FixtureRequest) -> str:
    """Each real agent program that is installed."""
    chosen: str = request.param
    if find(chosen) is None:
        pytest.skip(f"{chosen} is not installed")
    return chosen


@pytest.fixture
def server() -> Iterator[AgentModelServer]:
    """The scripted model that they talk to."""
    with agent_model_server() as running:
        yield running
