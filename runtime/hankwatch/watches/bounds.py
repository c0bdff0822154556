"""Rules on times and verifiers that hold for arming and editing alike; each gives the faults it finds (spec watches 2, 5)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from hankwatch.core.errors import Untimely, WatchInvalid, WrongState
from hankwatch.matching.conditions import compile_conditions
from hankwatch.matching.jsregex import RegexInvalid
from hankwatch.watches.authority import Principal
from hankwatch.watches.policies import Policy
from hankwatch.watches.specs import CheckSpec, DocumentSpec, EventSpec, TimeSpec, VerifierSpec, read_instant
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import Trigger

FURTHEST: Final = timedelta(days=36_525)
"""A century; what is named beyond is a slip of the pen, and near the end of the calendar it cannot be reckoned with."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the settings say of watches."""

    interval_s: float = 30.0
    home: str | None = None
    """The execution directory that new watches belong to."""
    asks_first: bool = False
    """Who is no operator proposes a watch, however safe its verifier is."""


class Late(str):
    """A fault that the clock alone finds: at another time the same could be meant."""

    __slots__ = ()


class Clash(str):
    """A fault of an edit that another watch could have taken."""

    __slots__ = ()


def refusal(faults: Sequence[str]) -> WatchInvalid:
    """What to raise for these faults."""
    if all(isinstance(fault, Late) for fault in faults):
        return Untimely(faults)
    return WrongState(faults) if all(isinstance(fault, Late | Clash) for fault in faults) else WatchInvalid(faults)


def instant_of(written: str | float, now: datetime) -> tuple[datetime | None, str | None]:
    """An absolute instant as people write it, or what is wrong with it."""
    try:
        at = read_instant(written)
    except ValueError as error:
        return None, str(error)
    if at.tzinfo is None:
        return None, f"{written!r} has no offset; add one, such as +00:00 or Z"
    if (wrong := _out_of_reach(at, now)) is not None:
        return None, wrong
    return at.astimezone(UTC), None


def _out_of_reach(at: datetime, now: datetime) -> str | None:
    if at <= now:
        return Late(f"{at.isoformat()} is over; it is {now.isoformat()} now")
    if at > now + FURTHEST:
        return Late(f"{at.isoformat()} is more than a century away")
    return None


def _kept(fault: str | None, said: str) -> str:
    """The same kind of fault in other words."""
    return Late(said) if isinstance(fault, Late) else said


def timed(spec: TimeSpec, principal: Principal, now: datetime) -> tuple[TimeSpec, list[str]]:
    """The verifier with its instant."""
    if (spec.at is None) == (spec.after_s is None):
        return spec, ["verifier: exactly one of at and after_s"]
    if spec.after_s is not None:
        return TimeSpec(type="time", at=now + timedelta(seconds=spec.after_s)), []
    assert spec.at is not None
    if principal.is_agent:
        return spec, ["verifier/at: an agent has no reliable clock; give after_s, seconds from now"]
    if spec.at.tzinfo is None:
        return spec, ["verifier/at: has no offset; add one, such as +00:00 or Z"]
    if (wrong := _out_of_reach(spec.at, now)) is not None:
        return spec, [Late(f"verifier/at: {wrong}")]
    return TimeSpec(type="time", at=spec.at.astimezone(UTC)), []


def absolute_deadline(
    written: str | float, principal: Principal, row: Policy, now: datetime
) -> tuple[datetime | None, list[str]]:
    if principal.is_agent:
        return None, ["deadline: an agent has no reliable clock; give expires_in_s, seconds from now"]
    at, wrong = instant_of(written, now)
    if at is None:
        return None, [_kept(wrong, f"deadline: {wrong}")]
    return at, [] if principal.is_operator else window_faults((at - now).total_seconds(), row)


def window_faults(window_s: float, row: Policy) -> list[str]:
    if row.windows_s is not None and window_s not in row.windows_s:
        return [f"expires_in_s: one of {numbers(row.windows_s)}"]
    if window_s > row.max_window_s:
        return [f"expires_in_s: at most {row.max_window_s:g} ({row.max_window_s / 86_400:g} days)"]
    return []


def floor_of(spec: VerifierSpec, row: Policy, verifiers: Verifiers) -> float:
    """Least seconds between two checks of this kind with this verifier."""
    floor_s = row.floors_s[verifiers.cost(spec).value]
    return max(floor_s, row.check_floor_s) if isinstance(spec, CheckSpec) else floor_s


def interval_of(asked_s: float | None, row: Policy, floor_s: float, defaults: Defaults) -> float:
    if asked_s is not None:
        return asked_s
    if row.cadences_s is not None:
        return row.cadences_s[0]
    return max(defaults.interval_s, floor_s)


def cadence_faults(asked_s: float | None, row: Policy, floor_s: float) -> list[str]:
    if asked_s is None:
        return []
    if row.cadences_s is not None and asked_s not in row.cadences_s:
        return [f"interval_s: one of {numbers(row.cadences_s)}"]
    return [f"interval_s: at least {floor_s:g} for such a check"] if asked_s < floor_s else []


def spec_faults(spec: VerifierSpec, trigger: Trigger, row: Policy, verifiers: Verifiers) -> Iterator[str]:
    if spec.type not in row.verifiers:
        yield f"verifier/type: one of {', '.join(sorted(row.verifiers))}"
    if isinstance(spec, EventSpec | TimeSpec) and trigger is Trigger.CHANGE:
        yield f"trigger: a {spec.type} has no value that could change"
    if isinstance(spec, DocumentSpec | CheckSpec):
        try:
            compile_conditions(spec.conditions)
        except RegexInvalid as error:
            yield f"verifier/conditions: {error}"
    if isinstance(spec, DocumentSpec) and spec.pointer and not spec.pointer.startswith("/"):
        yield "verifier/pointer: a JSON Pointer begins with /"
    if isinstance(spec, CheckSpec):
        check = verifiers.checks.find(spec.name, spec.version)
        if row.pinned_only and spec.version is None:
            yield f"verifier/version: must be exact, such as {spec.name}@v1"
        if check is None:
            known = ", ".join(known.pinned for known in verifiers.checks) or "none"
            yield f"verifier/name: no check {spec.name}{'@' + spec.version if spec.version else ''}; there are {known}"
        else:
            if row.pinned_only and check.asks_model:
                yield f"verifier/name: a model decides in {check.pinned}, which is for no watch of this kind"
            yield from (f"verifier/{fault}" for fault in check.faults(spec.args))


def numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
