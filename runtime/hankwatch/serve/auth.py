"""Who is calling, and what for."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hankwatch.core.clock import Clock, SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.core.request_errors import ScopeMissing, Unauthenticated
from hankwatch.serve.guesses import Guesses
from hankwatch.serve.logins import Logins
from hankwatch.serve.policy import SCOPES, Policy, PolicyFile, Scope
from hankwatch.watches.authority import Principal, Standing, operator

_BEARER: Final = "bearer "
_STEERS: Final = frozenset({Standing.OWNER, Standing.MANAGER})


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever made a request."""

    principal: Principal
    tenant: str = "local"
    """Whose the served executions are."""
    scopes: frozenset[Scope] = SCOPES

    def require(self, scope: Scope) -> None:
        """Refuse what the token is not for.

        Raises:
            ScopeMissing: it is for something else.
        """
        if scope not in self.scopes:
            raise ScopeMissing(f"this token is not for {scope}", hint=f"it is for {', '.join(sorted(self.scopes))}")

    @property
    def sees_runs(self) -> bool:
        """Whether the served executions are anything it may know of."""
        principal = self.principal
        return principal.is_operator or (principal.tenant == self.tenant and principal.standing(None) is not None)

    @property
    def reads_runs(self) -> bool:
        """Whether it sees runs, and its token is for that."""
        return "runs:read" in self.scopes and self.sees_runs

    @property
    def steers(self) -> bool:
        """Whether it may do more than look."""
        try:
            self.require_steering()
        except ScopeMissing:
            return False
        return True

    def require_steering(self) -> None:
        """Refuse who may only look.

        Raises:
            ScopeMissing: it may not steer runs.
        """
        self.require("runs:control")
        principal = self.principal
        if not principal.is_operator and (principal.is_agent or principal.standing(None) not in _STEERS):
            raise ScopeMissing("only operators, owners and managers steer runs")


class Door:
    """Knows callers by their tokens, and browsers by the cookie of their login.

    Args:
        policy: None: whoever can reach the loopback address is the operator.
        clock: Tells when a login is over.
    """

    def __init__(self, policy: PolicyFile | None = None, clock: Clock | None = None) -> None:
        self.policy = policy
        clock = clock or SystemClock()
        self.logins = Logins(clock)
        self.guesses = Guesses(clock)

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who made a request with these headers.

        Raises:
            Unauthenticated: there is no token, or none that is known.
        """
        if self.policy is None:
            return Caller(operator())
        written = headers.get("authorization", "")
        if written[: len(_BEARER)].lower() == _BEARER:
            return self.holder(written[len(_BEARER) :].strip())
        token = self.logins.token(headers)
        if token is None:
            raise Unauthenticated("this needs a token", hint="send it as `Authorization: Bearer TOKEN`")
        return self.holder(token)

    def known(self, headers: Mapping[str, str]) -> Caller | None:
        """The same; None for nobody."""
        try:
            return self.caller(headers)
        except Unauthenticated:
            return None

    def holder(self, token: str) -> Caller:
        """Whose token that is.

        Raises:
            Unauthenticated: nobody's.
        """
        if self.policy is None:
            return Caller(operator())
        policy: Policy = self.policy.current()
        grant = policy.grant(token)
        if grant is None:
            raise Unauthenticated("this token is not known", hint="its SHA-256 has to be in the policy file")
        return Caller(grant.principal, policy.tenant, grant.scopes)


def open_door(bind: str, policy_file: str | None) -> Door:
    """What guards an address.

    Raises:
        UsageError: others than this machine can reach it, and nothing says who may do what.
        ConfigError: the policy file has faults.
    """
    if policy_file is not None:
        return Door(PolicyFile(Path(policy_file).expanduser()))
    if not is_loopback(bind):
        raise UsageError(
            f"{bind} can be reached by other machines, and no policy file says who may do what",
            hint="set serve.policy_file (--policy FILE), or bind to 127.0.0.1",
        )
    return Door()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that name or address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
