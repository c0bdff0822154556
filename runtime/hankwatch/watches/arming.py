"""The watch that a request becomes: everything is checked before anything is stored (spec watches 5)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from hankwatch.watches.authority import Principal
from hankwatch.watches.bounds import (
    Defaults,
    Late,
    absolute_deadline,
    cadence_faults,
    floor_of,
    interval_of,
    numbers,
    refusal,
    spec_faults,
    timed,
    window_faults,
)
from hankwatch.watches.checks import Trust
from hankwatch.watches.codec import identity, watch_id
from hankwatch.watches.decide import next_check
from hankwatch.watches.policies import MINUTE_S, Activation, AtExpiry, Policy, policy
from hankwatch.watches.requests import WatchRequest
from hankwatch.watches.specs import CheckSpec, TimeSpec, VerifierSpec
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import DEFAULT_NOTIFY_ON, Status, Trigger, Watch


def planned(
    request: WatchRequest,
    principal: Principal,
    verifiers: Verifiers,
    defaults: Defaults,
    now: datetime,
    *,
    depth: int = 0,
) -> Watch:
    """The watch that a request becomes, active or proposed as its policy has it.

    Args:
        request: What is asked for.
        principal: Who asks.
        verifiers: Knows what a check costs and who may use it.
        defaults: Of the settings.
        now: The instant of asking.
        depth: 0 in a user's turn, d + 1 in a turn that was woken at d.

    Raises:
        WatchInvalid: it cannot be; every fault is named.
    """
    row, spec, faults = policy(request.kind), request.verifier, list[str]()
    if isinstance(spec, TimeSpec):
        spec, wrong = timed(spec, principal, now)
        faults += wrong
    expires_at, wrong = _deadline(request, spec, principal, row, now)
    faults += wrong
    faults += _too_late(spec, expires_at, row)
    faults += _verifier_faults(request, spec, principal, row, verifiers)
    floor_s = floor_of(spec, row, verifiers)
    interval_s = interval_of(request.interval_s, row, floor_s, defaults)
    faults += cadence_faults(request.interval_s, row, floor_s)
    actions = _actions(request, row)
    faults += _reaction_faults(request, row, actions, depth)
    if faults:
        raise refusal(faults)
    session = request.session
    parts = identity(
        kind=request.kind,
        tenant=principal.tenant,
        owner=principal.actor,
        session=session,
        home=defaults.home,
        spec=spec,
        condition=request.condition,
    )
    at_once = row.activation is Activation.AT_ONCE or (
        row.activation is Activation.BY_TRUST
        and (principal.is_operator or (verifiers.trust(spec) is Trust.SAFE and not defaults.asks_first))
    )
    watch = Watch(
        id=request.id or watch_id(request.condition, f"{principal.tenant}/{principal.actor}/{parts}"),
        kind=request.kind,
        tenant=principal.tenant,
        owner=principal.actor,
        session=session,
        home=defaults.home,
        condition=request.condition,
        verifier=spec,
        behaviour_digest=verifiers.behaviour_digest(spec),
        trigger=request.trigger,
        repeat=_repeats(request),
        interval_s=interval_s,
        created_at=now,
        expires_at=expires_at,
        stall_after=request.stall_after,
        run_prompt=request.run_prompt or request.note,
        run_session=request.run_session,
        actions=actions,
        notify_on=DEFAULT_NOTIFY_ON if request.notify_on is None else frozenset(request.notify_on),
        depth=depth,
        status=Status.ACTIVE if at_once else Status.PROPOSED,
    )
    return replace(watch, next_check_at=next_check(watch, now, 0.0))


def _deadline(
    request: WatchRequest, spec: VerifierSpec, principal: Principal, row: Policy, now: datetime
) -> tuple[datetime | None, list[str]]:
    said = sum((request.expires_in_s is not None, request.deadline is not None, request.never_expires))
    if said > 1:
        return None, ["only one of expires_in_s, deadline and never_expires"]
    if request.never_expires:
        wrong = [] if principal.is_operator else ["never_expires: only an operator may say so; give expires_in_s"]
        return None, wrong
    if request.deadline is not None:
        return absolute_deadline(request.deadline, principal, row, now)
    window_s = request.expires_in_s or row.default_window_s
    if window_s is None:
        return None, [f"expires_in_s: must be given, one of {numbers(row.windows_s or ())}"]
    if request.expires_in_s is None and isinstance(spec, TimeSpec) and spec.at is not None and spec.at.tzinfo:
        window_s = max(window_s, (spec.at - now).total_seconds() + MINUTE_S)  # else it ends before its instant
        too_long: list[str] = [Late(f"verifier/at: {fault}") for fault in window_faults(window_s, row)]
        return now + timedelta(seconds=window_s), too_long
    return now + timedelta(seconds=window_s), window_faults(window_s, row)


def _too_late(spec: VerifierSpec, expires_at: datetime | None, row: Policy) -> Iterator[str]:
    if not isinstance(spec, TimeSpec) or spec.at is None or spec.at.tzinfo is None or expires_at is None:
        return
    fires_at_its_end = row.at_expiry is AtExpiry.FINAL_CHECK
    if spec.at > expires_at or (spec.at == expires_at and not fires_at_its_end):
        yield Late("verifier: it ends before its instant comes; give it more time (expires_in_s)")


def _verifier_faults(
    request: WatchRequest, spec: VerifierSpec, principal: Principal, row: Policy, verifiers: Verifiers
) -> Iterator[str]:
    yield from spec_faults(spec, request.trigger, row, verifiers)
    safe = verifiers.trust(spec) is Trust.SAFE
    if (
        row.activation is Activation.AT_ONCE
        and not principal.is_operator
        and not safe
        and not _read_only(spec, verifiers)
    ):
        yield "verifier: a monitor watches documents inside the execution directory, times, and read-only tools"


def _read_only(spec: VerifierSpec, verifiers: Verifiers) -> bool:
    if not isinstance(spec, CheckSpec):
        return isinstance(spec, TimeSpec)
    check = verifiers.checks.find(spec.name, spec.version)
    return check is not None and check.read_only


def _repeats(request: WatchRequest) -> bool:
    if request.repeat is not None:
        return request.repeat
    return policy(request.kind).repeats and request.trigger is Trigger.CHANGE


def _actions(request: WatchRequest, row: Policy) -> frozenset[str]:
    if request.actions is not None:
        named = {"wake" if action == "wake_session" else action for action in request.actions}
        return frozenset(named | {"event"})
    has_session = request.session is not None or request.run_session is not None
    usual = {"in_app", "event", "hook"} | ({"wake"} if has_session else set[str]())
    return frozenset(usual & row.actions)


def _reaction_faults(request: WatchRequest, row: Policy, actions: frozenset[str], depth: int) -> Iterator[str]:
    if request.run_prompt is not None and request.note is not None:
        yield "only one of run_prompt and note"
    if unknown := actions - row.actions:
        yield f"actions: a {request.kind.value} cannot {', '.join(sorted(unknown))}"
    if request.actions is None and row.activation is Activation.BY_APPROVAL:
        yield "actions: at least one of in_app and wake_session"
    if not actions - {"event"}:
        yield "actions: at least one"
    if "wake" in actions and request.session is None and request.run_session is None:
        yield "session: a wake needs a session to wake"
    if request.repeat and not row.repeats:
        yield f"repeat: a {request.kind.value} fires once"
    if row.max_depth is not None and depth > row.max_depth:
        yield "a turn that was woken by a follow-up arms no further one"
