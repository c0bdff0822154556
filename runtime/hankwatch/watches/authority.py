"""Who may do what to which watch (spec watches 5, "Authority")."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Protocol

from hankwatch.core.errors import Forbidden, WatchNotFound
from hankwatch.watches.policies import Activation, policy
from hankwatch.watches.turn import Turn
from hankwatch.watches.watch import Watch

AGENT_WATCHES: Final = "agent_watches"
"""The entitlement that watches activated by approval need, at all four stages."""


class Action(StrEnum):
    """What is about to be done; the first, second, and last two are the four stages."""

    PROPOSE = "propose"
    """Arm or propose."""
    APPROVE = "approve"
    READ = "read"
    EDIT = "edit"
    CANCEL = "cancel"
    CHECK = "check"
    DELIVER = "deliver"


class Standing(StrEnum):
    """What somebody is in a session."""

    OWNER = "owner"
    MANAGER = "manager"
    MEMBER = "member"


_OF_A_STANDING_WATCH: Final = frozenset({Action.APPROVE, Action.READ, Action.EDIT, Action.CANCEL})
_MANAGES: Final = frozenset({Standing.OWNER, Standing.MANAGER})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks."""

    tenant: str
    """Nobody sees anything of another tenant's."""
    actor: str
    """Who, within the tenant; owns what it arms."""
    is_operator: bool = False
    """Of this instance: may do everything, and is held to no cap."""
    is_agent: bool = False
    """An agent's turn: arms in its own session, and approves nothing."""
    is_scoped: bool = False
    """A token for one purpose, which cannot delegate the managing of watches."""
    sessions: Mapping[str, Standing] = field(default_factory=dict)
    """Session -> standing; ``*`` for all sessions of the tenant."""
    entitlements: frozenset[str] = frozenset()
    """``agent_watches``, which watches that are activated by approval need."""
    may_be_notified: bool = True
    """Whether deliveries to it may go out."""
    home: str | None = None
    """The one execution whose watches it may know of: sessions of two may have the same name. None for all."""

    def standing(self, session: str | None) -> Standing | None:
        """What it is in a session."""
        return self.sessions.get(session or "*", self.sessions.get("*"))


def operator(actor: str = "operator", tenant: str = "local") -> Principal:
    """Whoever works on this machine: the command line, and loopback without a policy file."""
    return Principal(tenant, actor, is_operator=True, sessions={"*": Standing.OWNER})


def agent(
    session: str, tenant: str = "local", entitlements: frozenset[str] = frozenset(), home: str | None = None
) -> Principal:
    """The agent whose turn runs in ``session``, of the execution ``home``."""
    return Principal(
        tenant,
        f"agent:{session}",
        is_agent=True,
        sessions={session: Standing.MEMBER},
        entitlements=entitlements,
        home=home,
    )


class Authorizer(Protocol):
    """Decides; asked at propose, approve, every check (before the target is read) and delivery."""

    def check(self, principal: Principal, action: Action, watch: Watch) -> None:
        """Return when it may; raise ``Forbidden``, or ``WatchNotFound`` when it may not even know."""
        ...

    def owner_of(self, watch: Watch) -> Principal | None:
        """The owner as it stands now, with what it may today; None when it is gone."""
        ...

    def agent_of(self, turn: Turn) -> Principal:
        """The agent of a turn, with what it may today; whoever it is, it approves nothing."""
        ...


class LocalAuthorizer:
    """One machine, one user: every owner is there, and has what it had when it armed.

    Args:
        principals: Owners with rights of their own, by tenant and actor; whoever is not named has all.
    """

    def __init__(self, principals: Mapping[tuple[str, str], Principal] | None = None) -> None:
        self._principals = dict(principals or {})

    def check(self, principal: Principal, action: Action, watch: Watch) -> None:
        """See ``Authorizer``."""
        check(principal, action, watch)

    def owner_of(self, watch: Watch) -> Principal | None:
        """See ``Authorizer``."""
        named = self._principals.get((watch.tenant, watch.owner))
        standing = {watch.session or "*": Standing.OWNER}
        return named or Principal(watch.tenant, watch.owner, sessions=standing, entitlements=frozenset({AGENT_WATCHES}))

    def agent_of(self, turn: Turn) -> Principal:
        """See ``Authorizer``."""
        usual = agent(turn.session, entitlements=frozenset({AGENT_WATCHES}), home=turn.home)
        named = self._principals.get((usual.tenant, usual.actor))
        return usual if named is None else as_agent(named, turn)


def as_agent(named: Principal, turn: Turn) -> Principal:
    """What somebody may while an agent's turn speaks for it."""
    return replace(named, is_agent=True, is_operator=False, home=turn.home)


def check(principal: Principal, action: Action, watch: Watch) -> None:
    """The rules. Nobody reads, replaces, edits or cancels what is not theirs, nor learns that it is there.

    Raises:
        Forbidden: it may know of the watch, and may not do this.
        WatchNotFound: it may not even know.
    """
    if principal.is_operator:
        return
    if principal.tenant != watch.tenant or principal.home not in {None, watch.home}:
        raise WatchNotFound(watch.id)
    standing, is_own = principal.standing(watch.session), principal.actor == watch.owner
    by_approval = policy(watch.kind).activation is Activation.BY_APPROVAL
    if action in _OF_A_STANDING_WATCH:
        manages = standing in _MANAGES and not principal.is_agent
        _require_known(watch, known=manages or (is_own and (principal.is_agent or standing is not None)))
    if by_approval and AGENT_WATCHES not in principal.entitlements:
        raise Forbidden(action, watch.id, f"{principal.actor} has no entitlement {AGENT_WATCHES}")
    if action is Action.CHECK:
        _require(standing is not None, action, watch, "its owner has no access to the session any more")
    elif action is Action.DELIVER:
        _require(standing is not None and principal.may_be_notified, action, watch, "its owner may not be notified")
    elif action is Action.APPROVE:
        _require(standing in _MANAGES, action, watch, "only owners and managers of the session approve")
        _require(not principal.is_agent, action, watch, "an agent approves nothing")
        _require(not principal.is_scoped, action, watch, "a scoped token does not manage watches")
    elif action is Action.PROPOSE:
        _require(standing is not None, action, watch, f"{principal.actor} does not belong to session {watch.session}")
        woken = watch.run_session or watch.session
        _require(principal.standing(woken) is not None, action, watch, f"session {woken} is not its own to wake")
        allowed = standing in _MANAGES or principal.is_agent
        _require(allowed and not principal.is_scoped, action, watch, "only owners and managers of the session do")
    else:
        _require(
            standing in _MANAGES or principal.is_agent, action, watch, "only owners and managers of the session do"
        )
        _require(not principal.is_scoped, action, watch, "a scoped token does not manage watches")


def _require(holds: bool, action: Action, watch: Watch, reason: str) -> None:
    if not holds:
        raise Forbidden(action, watch.id, reason)


def _require_known(watch: Watch, *, known: bool) -> None:
    if not known:
        raise WatchNotFound(watch.id)
