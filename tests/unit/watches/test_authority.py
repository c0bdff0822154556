"""Who may do what to which watch (spec watches 5)."""

import pytest
from tests.support.watches import a_watch

from hankwatch.core.errors import Forbidden, WatchNotFound
from hankwatch.watches.authority import AGENT_WATCHES, Action, Principal, Standing, agent, check, operator
from hankwatch.watches.watch import Kind, Watch

ENTITLED = frozenset({AGENT_WATCHES})


def person(standing: Standing | None, **more: object) -> Principal:
    sessions = {} if standing is None else {"main": standing}
    return Principal("acme", "bob", sessions=sessions, **({"entitlements": ENTITLED} | more))  # type: ignore[arg-type]


def allowed(principal: Principal, watch: Watch) -> set[str]:
    found = set[str]()
    for action in Action:
        try:
            check(principal, action, watch)
        except (Forbidden, WatchNotFound):
            continue
        found.add(action.value)
    return found


def test_an_operator_may_everything() -> None:
    assert allowed(operator(), a_watch()) == {action.value for action in Action}


@pytest.mark.parametrize("standing", [Standing.OWNER, Standing.MANAGER])
def test_owners_and_managers_of_its_session_may_everything(standing: Standing) -> None:
    for kind in Kind:
        assert allowed(person(standing), a_watch(kind=kind)) == {action.value for action in Action}


@pytest.mark.parametrize("standing", [Standing.MEMBER, None])
def test_others_of_the_tenant_manage_nothing(standing: Standing | None) -> None:
    assert allowed(person(standing), a_watch()) <= {"check", "deliver"}


@pytest.mark.parametrize("action", Action)
def test_another_tenant_does_not_even_learn_that_it_is_there(action: Action) -> None:
    with pytest.raises(WatchNotFound):
        check(Principal("other", "alice", sessions={"*": Standing.OWNER}), action, a_watch())


def test_an_agent_manages_its_own_and_approves_nothing() -> None:
    mine, theirs = a_watch(tenant="local", owner="agent:main"), a_watch(tenant="local")

    assert allowed(agent("main"), mine) == {"propose", "read", "edit", "cancel", "check", "deliver"}
    assert allowed(agent("main"), theirs) == {"propose", "check", "deliver"}


def test_an_agent_arms_nothing_in_another_session() -> None:
    assert "propose" not in allowed(agent("other"), a_watch(tenant="local", owner="agent:other"))


def test_a_scoped_token_manages_nothing() -> None:
    assert allowed(person(Standing.OWNER, is_scoped=True), a_watch()) == {"check", "deliver"}


def test_without_the_entitlement_an_agent_watch_is_closed_at_every_stage() -> None:
    assert allowed(person(Standing.OWNER, entitlements=frozenset()), a_watch(kind=Kind.AGENT_WATCH)) == set()


@pytest.mark.parametrize("action", [Action.READ, Action.EDIT, Action.CANCEL, Action.APPROVE])
def test_who_has_no_part_in_it_does_not_learn_of_it_by_what_it_lacks(action: Action) -> None:
    for outsider in (person(None, entitlements=frozenset()), agent("other", tenant="acme")):
        with pytest.raises(WatchNotFound):
            check(outsider, action, a_watch(kind=Kind.AGENT_WATCH))


def test_lost_access_closes_checks_and_deliveries_and_a_muted_owner_only_these() -> None:
    assert not allowed(person(None), a_watch()) & {"check", "deliver"}
    assert "deliver" not in allowed(person(Standing.OWNER, may_be_notified=False), a_watch())
    assert "check" in allowed(person(Standing.OWNER, may_be_notified=False), a_watch())
