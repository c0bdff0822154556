"""What an agent's turn tells of itself, and what its own commands may do with that (spec watches 1 and 5)."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.watches import a_watch

from hankwatch.core.errors import Forbidden, WatchNotFound
from hankwatch.home_watches import agent_variables
from hankwatch.settings import Settings, load_settings
from hankwatch.watches.authority import AGENT_WATCHES, Action, LocalAuthorizer, Principal, Standing, check
from hankwatch.watches.turn import Turn
from hankwatch.watches.watch import Kind

TURN = Turn("write", depth=1, home="/runs/one")
MINE = replace(a_watch(tenant="local", owner="agent:write", session="write"), home="/runs/one")


def given(**variables: str) -> Settings:
    loaded = load_settings(environ={"HOME": "/home/ann", **variables}, cwd=Path("/"))
    assert loaded.diagnostics.ok
    return loaded.settings


def test_a_turn_is_what_its_environment_says() -> None:
    assert Turn.of(TURN.environment()) == TURN
    assert Turn.of({}) is None


@pytest.mark.parametrize("written", ["-3", "deep", "", "1e9"])
def test_nothing_that_is_written_makes_a_turn_shallower_than_a_users(written: str) -> None:
    assert Turn.of({"HANKWATCH_SESSION": "write", "HANKWATCH_WATCH_DEPTH": written}) == Turn("write")


def test_a_turns_agent_proposes_in_its_session_and_approves_nothing() -> None:
    agent, proposal = LocalAuthorizer().agent_of(TURN), replace(MINE, kind=Kind.AGENT_WATCH)

    check(agent, Action.PROPOSE, proposal)
    with pytest.raises(Forbidden, match="approve"):
        check(agent, Action.APPROVE, proposal)
    with pytest.raises(Forbidden, match="does not belong"):
        check(agent, Action.PROPOSE, replace(MINE, session="read"))


def test_a_turns_agent_wakes_no_other_session() -> None:
    with pytest.raises(Forbidden, match="not its own to wake"):
        check(LocalAuthorizer().agent_of(TURN), Action.PROPOSE, replace(MINE, run_session="read"))


def test_the_session_of_another_execution_is_another_session() -> None:
    with pytest.raises(WatchNotFound):
        check(LocalAuthorizer().agent_of(TURN), Action.READ, replace(MINE, home="/runs/two"))


def test_a_policy_that_names_the_agent_decides_what_it_may() -> None:
    named = Principal("local", "agent:write", is_operator=True, sessions={"*": Standing.OWNER})
    agent = LocalAuthorizer({("local", "agent:write"): named}).agent_of(TURN)

    assert (agent.is_agent, agent.is_operator, agent.home) == (True, False, TURN.home)
    with pytest.raises(Forbidden, match=AGENT_WATCHES):
        check(agent, Action.PROPOSE, replace(MINE, kind=Kind.AGENT_WATCH))


def test_an_agents_commands_work_with_the_store_and_the_rules_of_its_run() -> None:
    settings = given(HANKWATCH_WATCHES_ACTIVATION="ask", HANKWATCH_SERVE_POLICY_FILE="/etc/policy.toml")

    variables = agent_variables(settings, {"HOME": "/home/ann"})

    assert variables == {
        "HANKWATCH_WATCHES_STORE": "/home/ann/.local/state/hankwatch/watches.db",
        "HANKWATCH_WATCHES_ACTIVATION": "ask",
        "HANKWATCH_SERVE_POLICY_FILE": "/etc/policy.toml",
    }
    assert given(**variables).watches.activation == "ask"


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        ("postgresql://ann:secret@db/watches", "postgresql://ann@db/watches"),
        ("postgresql://db/watches?password=secret", "postgresql://db/watches?"),
        ("postgresql://127.0.0.1:5432/watches", "postgresql://127.0.0.1:5432/watches"),
        ("sqlite:////var/watches.db", "/var/watches.db"),
    ],
)
def test_an_agent_learns_no_password_of_the_store(store: str, shown: str) -> None:
    assert agent_variables(given(HANKWATCH_WATCHES_STORE=store), {})["HANKWATCH_WATCHES_STORE"] == shown
