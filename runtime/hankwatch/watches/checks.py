"""Checks that watches can name: functions with a version, what they cost, and who may use them (spec watches 4)."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

import anyio

from hankwatch.core.contain import contain
from hankwatch.core.errors import UsageError
from hankwatch.watches.blocking import contained, is_async
from hankwatch.watches.codec import digest
from hankwatch.watches.watch import ErrorKind, Outcome

GROUP: Final = "hankwatch.checks"
"""Entry points of other packages; each names a ``Check`` or a list of them."""


class Cost(StrEnum):
    """What one check costs; decides how often it may run."""

    CHEAP = "cheap"
    PROCESS = "process"
    REMOTE = "remote"


class Trust(StrEnum):
    """Who may arm a watch with it."""

    SAFE = "safe"
    """Agents too."""
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Invoker:
    """Whose watch is checked, so that one check can keep something per watch."""

    kind: str
    id: str
    tenant: str
    owner: str
    session: str | None
    home: str | None
    interval_s: float


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a check is given beside its arguments."""

    invoker: Invoker
    now: datetime


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found."""

    outcome: Outcome
    reason: str = ""
    """A code, kebab-case; empty for the outcome's name."""
    text: str = ""
    """The reason in words."""
    value: Any = None
    """JSON; what ``change`` watches compare and conditions look at."""
    evidence: str = ""
    """For people."""
    error: ErrorKind | None = None
    """For ``unavailable``."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``run`` returns a finding, or True for satisfied and False for pending; raising claims nothing."""

    name: str
    """Without an ``@``."""
    run: Callable[[CheckContext, Mapping[str, Any]], Awaitable[Finding | bool] | Finding | bool]
    """A plain function, which may block, runs in a thread of its own; and so does a coroutine of another package, in a
    loop of its own."""
    version: str = "v1"
    description: str = ""
    """For people; changing it changes no behaviour."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    """JSON Schema of its arguments."""
    behaviour: Any = None
    """JSON that says what else its answers depend on, such as a tool's steps; default: the function's code."""
    cost: Cost = Cost.REMOTE
    trust: Trust = Trust.OPERATOR
    read_only: bool = False
    """A tool that changes nothing; what monitors may watch."""
    asks_model: bool = False
    """A model decides; never for what an approval activates."""
    limit_s: float = 30.0
    """Longest it may take."""

    @property
    def pinned(self) -> str:
        """``name@version``."""
        return f"{self.name}@{self.version}"

    @property
    def behaviour_digest(self) -> str:
        """Changes with what it does, not with how it is described."""
        return digest([self.name, self.version, self.parameters, self.behaviour or _code_of(self.run)])

    def faults(self, args: Mapping[str, Any]) -> list[str]:
        """What is wrong with these arguments."""
        import jsonschema  # most commands on watches check no arguments

        validator = jsonschema.validators.validator_for(self.parameters)(self.parameters)
        return [f"{error.json_path.replace('$', 'args', 1)}: {error.message}" for error in validator.iter_errors(args)]


class Checks:
    """The checks of this process."""

    def __init__(self, checks: list[Check]) -> None:
        self._checks: dict[tuple[str, str], Check] = {}
        for check in checks:
            self.add(check)

    def __iter__(self) -> Iterator[Check]:
        """By name and version."""
        return iter([check for _, check in sorted(self._checks.items())])

    def add(self, check: Check) -> None:
        """Register one; a second of the same name and version takes the place of the first."""
        self._checks[check.name, check.version] = check

    def find(self, name: str, version: str | None) -> Check | None:
        """The check of that version, or the latest without one; None when there is none."""
        if version is not None:
            return self._checks.get((name, version))
        versions = [check for check in self._checks.values() if check.name == name]
        return max(versions, key=lambda check: _number(check.version), default=None)


def plugin_checks() -> tuple[list[Check], list[UsageError]]:
    """The checks that installed packages add, and a fault for each package that cannot be used."""
    found, faults = list[Check](), list[UsageError]()
    for entry in entry_points(group=GROUP):
        failures = list[Exception]()
        with contain(failures.append):
            loaded = entry.load()
            added = [loaded] if isinstance(loaded, Check) else list(loaded)
            if not all(isinstance(check, Check) for check in added):
                raise TypeError("not a Check")
            found += [_in_own_loop(check) for check in added]
        faults += [
            UsageError(f"the checks {entry.name} of {entry.value} cannot be used: {type(failure).__name__}: {failure}")
            for failure in failures
        ]
    return found, faults


def _in_own_loop(check: Check) -> Check:
    """A check whose coroutine, should it block, blocks a loop of its own and not everybody's."""
    if not is_async(check.run):
        return check

    def run(context: CheckContext, args: Mapping[str, Any]) -> Finding | bool:
        async def limited() -> Finding | bool:
            with anyio.fail_after(check.limit_s):
                return await contained(partial(check.run, context, args))

        return anyio.run(limited)

    return replace(check, run=run, behaviour=check.behaviour or _code_of(check.run))


def _number(version: str) -> int:
    digits = version.removeprefix("v")
    return int(digits) if digits.isdecimal() else 0


def _code_of(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return "" if code is None else digest([code.co_code.hex(), repr(code.co_consts), repr(code.co_names)])
