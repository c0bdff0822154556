"""The policy file: which token is whose, and what its owner may do (spec watches 5, "Authority").

::

    tenant = "acme"                      # whose the executions are that are served

    [[principals]]
    tenant = "acme"
    actor = "alice"
    sessions = { "*" = "owner" }         # session -> owner, manager or member; "*" is all of the tenant
    entitlements = ["agent_watches"]
    tokens = [
      { sha256 = "<64 hex digits>" },                            # all that alice may
      { sha256 = "<64 hex digits>", scopes = ["runs:read"] },    # only this
    ]
"""

import hashlib
import hmac
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.toml import load_toml
from hankwatch.config.validation import ConfigModel, validate
from hankwatch.core.errors import ConfigError
from hankwatch.watches.authority import Action, LocalAuthorizer, Principal, Standing, as_agent, check
from hankwatch.watches.turn import Turn
from hankwatch.watches.watch import Watch

_LOG = logging.getLogger(__name__)

Scope = Literal["runs:read", "runs:control", "watches:read", "watches:write", "metrics:read"]
"""One thing that a token may be for."""
SCOPES: frozenset[Scope] = frozenset(get_args(Scope))
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Entry(ConfigModel):
    model_config = ConfigDict(alias_generator=None)


class TokenEntry(_Entry):
    """One bearer token, of which only the digest is written down."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the token's bytes, as ``printf %s TOKEN | sha256sum`` prints it."""
    scopes: list[Scope] | None = None
    """What it is for; without, everything its owner may. A token with scopes manages no watches."""


class PrincipalEntry(_Entry):
    """Somebody, and the tokens that speak for them."""

    tenant: Name
    """Nobody sees anything of another tenant's."""
    actor: Name
    """Who, within the tenant."""
    roles: list[Literal["operator", "agent"]] = Field(default=[])
    """``operator``: everything, of all tenants, but by a token with scopes. ``agent``: an agent, which approves nothing."""
    sessions: dict[Name, Literal["owner", "manager", "member"]] = Field(default={})
    """Standing by session; ``*`` for all. Runs are read by who has one in ``*``, and steered by owners and managers."""
    entitlements: list[Name] = Field(default=[])
    """What it has paid for, so to speak: ``agent_watches``."""
    may_be_notified: bool = True
    """False suppresses whatever is still to be delivered to it."""
    tokens: list[TokenEntry] = Field(default=[])
    """None: it is known, and cannot call."""


class PolicyModel(_Entry):
    """The file."""

    tenant: Name = "local"
    """Whose the served executions are."""
    principals: list[PrincipalEntry] = Field(default=[])
    """Everybody who may anything."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token stands for."""

    principal: Principal
    scopes: frozenset[Scope] = SCOPES


@dataclass(frozen=True, slots=True)
class Policy:
    """One reading of the file."""

    tenant: str = "local"
    """Whose the served executions are."""
    principals: Mapping[tuple[str, str], Principal] = field(default_factory=dict)
    """By tenant and actor."""
    tokens: tuple[tuple[str, Grant], ...] = ()
    """SHA-256 and what it grants."""

    def grant(self, token: str) -> Grant | None:
        """What a bearer token grants; every known digest is compared, however early one fits."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
        found = None
        for known, grant in self.tokens:
            if hmac.compare_digest(known, digest):
                found = grant
        return found


def load_policy(path: Path) -> Policy:
    """Read a policy file.

    Raises:
        ConfigError: it is missing or has faults; all of them are named.
    """
    diagnostics = Diagnostics()
    model = validate(PolicyModel, load_toml(path), diagnostics)
    policy = None if model is None else _policy(model, str(path), diagnostics)
    if policy is None or not diagnostics.ok:
        raise ConfigError(diagnostics.errors)
    return policy


def _policy(model: PolicyModel, file: str, diagnostics: Diagnostics) -> Policy:
    principals: dict[tuple[str, str], Principal] = {}
    tokens: dict[str, Grant] = {}
    for number, entry in enumerate(model.principals):
        place = f"/principals/{number}"
        if (entry.tenant, entry.actor) in principals:
            told = f"{entry.actor} of {entry.tenant} is there already"
            diagnostics.add(Diagnostic(file, place, "doubled-principal", told, "write their tokens into one entry"))
        principals[entry.tenant, entry.actor] = _principal(entry)
        for index, token in enumerate(entry.tokens):
            if token.sha256 in tokens:
                where = f"{place}/tokens/{index}"
                diagnostics.add(Diagnostic(file, where, "doubled-token", "this digest is there already"))
            scopes = SCOPES if token.scopes is None else frozenset(token.scopes)
            tokens[token.sha256] = Grant(_principal(entry, is_scoped=token.scopes is not None), scopes)
    return Policy(model.tenant, principals, tuple(tokens.items()))


def _principal(entry: PrincipalEntry, *, is_scoped: bool = False) -> Principal:
    return Principal(
        entry.tenant,
        entry.actor,
        is_operator="operator" in entry.roles and not is_scoped,
        is_agent="agent" in entry.roles,
        is_scoped=is_scoped,
        sessions={name: Standing(standing) for name, standing in entry.sessions.items()},
        entitlements=frozenset(entry.entitlements),
        may_be_notified=entry.may_be_notified,
    )


class PolicyFile:
    """The policy as the file has it now; used from any thread.

    A change that has faults changes nothing: what was read last stands, ``fault`` says why.

    Args:
        path: The file.

    Raises:
        ConfigError: it cannot be read to begin with.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: str | None = None
        """Why the file as it is now is not in force."""
        self._seen = _identity(path)
        self._policy = load_policy(path)
        self._lock = threading.Lock()

    def current(self) -> Policy:
        """Read anew when the file has changed."""
        if (now := _identity(self.path)) != self._seen:
            with self._lock:
                if now != self._seen:
                    self._read()
                    self._seen = now
        return self._policy

    def _read(self) -> None:
        try:
            self._policy, self.fault = load_policy(self.path), None
            _LOG.info("the policy %s was read anew", self.path)
        except ConfigError as error:
            self.fault = str(error)
            _LOG.error("the policy %s has faults; what it said before stands: %s", self.path, error)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - asked before every request
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


_AGENT = "agent:"
_HERE = ("local", "operator")


class PolicyAuthorizer:
    """Decides by the policy file as it is at that moment.

    Watches of who is not in the file any more are without an owner, and end or stay silent. Those that were armed
    on this machine itself, by its command line or by agents of its runs, keep what they have unless the file names
    their owner.
    """

    def __init__(self, file: PolicyFile) -> None:
        self._file = file
        self._local = LocalAuthorizer()

    def check(self, principal: Principal, action: Action, watch: Watch) -> None:
        """See ``Authorizer``."""
        check(principal, action, watch)

    def owner_of(self, watch: Watch) -> Principal | None:
        """See ``Authorizer``."""
        owner = (watch.tenant, watch.owner)
        named = self._file.current().principals.get(owner)
        if named is None and (owner == _HERE or (watch.tenant == "local" and watch.owner.startswith(_AGENT))):
            return self._local.owner_of(watch)
        return named

    def agent_of(self, turn: Turn) -> Principal:
        """See ``Authorizer``."""
        usual = self._local.agent_of(turn)
        named = self._file.current().principals.get((usual.tenant, usual.actor))
        return usual if named is None else as_agent(named, turn)
