"""A live watch with only what is given changed (spec watches 5)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hankwatch.core.errors import WrongState
from hankwatch.watches.authority import Principal
from hankwatch.watches.bounds import (
    Clash,
    Defaults,
    absolute_deadline,
    cadence_faults,
    floor_of,
    interval_of,
    refusal,
    spec_faults,
    timed,
    window_faults,
)
from hankwatch.watches.checks import Trust
from hankwatch.watches.decide import Decision, Raised, next_check
from hankwatch.watches.policies import Policy, policy
from hankwatch.watches.requests import WatchEdit
from hankwatch.watches.specs import TimeSpec, VerifierSpec
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import Memory, Signal, Status, Watch


@dataclass(frozen=True, slots=True)
class Editing:
    """Makes one edit of one watch."""

    edit: WatchEdit
    principal: Principal
    verifiers: Verifiers
    defaults: Defaults
    now: datetime

    def of(self, watch: Watch) -> Decision:
        """The watch after it; a re-aim starts afresh under the next generation.

        Raises:
            WatchInvalid: it cannot be; every fault is named.
        """
        faults = [*self._standing_faults(watch)]
        spec = self._spec(watch, faults)
        if self.edit.verifier is not None or self.edit.trigger is not None:
            faults += spec_faults(spec, self.edit.trigger or watch.trigger, policy(watch.kind), self.verifiers)
        changes = self._times(watch, spec, faults) | self._others()
        if self.edit.repeat and not policy(watch.kind).repeats:
            faults.append(Clash(f"repeat: a {watch.kind.value} fires once"))
        if faults:
            raise refusal(faults)
        if "stall_after" in changes:  # a raised threshold does not fire off checks counted under the old one
            changes["memory"] = replace(watch.memory, stall_streak=0, stalled=False)
        after = self._aimed(watch, replace(watch, verifier=spec, **changes))
        return Decision(after, (Raised(Signal.UPDATED, None, "edited"),))

    def _standing_faults(self, watch: Watch) -> Iterator[str]:
        require_readable(watch)
        if watch.status is not Status.ACTIVE:
            raise WrongState(
                [f"watch {watch.id} is {watch.status.value}; only active watches are edited, make a new one"]
            )
        if self.principal.is_operator:
            return
        if self.edit.run_session is not None and self.principal.standing(self.edit.run_session) is None:
            yield f"run_session: {self.edit.run_session} is not yours to wake"
        if self.edit.verifier is not None:
            yield "verifier: only an operator changes how a watch is checked"
        elif self.verifiers.trust(watch.verifier) is not Trust.SAFE:
            yield "a watch whose verifier only an operator may arm is edited by operators only"

    def _spec(self, watch: Watch, faults: list[str]) -> VerifierSpec:
        spec = self.edit.verifier
        if spec is None:
            return watch.verifier
        if isinstance(spec, TimeSpec):
            spec, wrong = timed(spec, self.principal, self.now)
            faults += wrong
        return spec

    def _times(self, watch: Watch, spec: VerifierSpec, faults: list[str]) -> dict[str, Any]:
        row, given, changes = policy(watch.kind), self.edit.model_fields_set, dict[str, Any]()
        floor_s = floor_of(spec, row, self.verifiers)
        if "interval_s" in given:
            wrong = cadence_faults(self.edit.interval_s, row, floor_s)
            faults += wrong if self.edit.verifier is not None else map(Clash, wrong)
            changes["interval_s"] = interval_of(self.edit.interval_s, row, floor_s, self.defaults)
        elif self.edit.verifier is not None:
            changes["interval_s"] = max(watch.interval_s, floor_s)
        if self.edit.clear_deadline or given & {"deadline", "expires_in_s"}:
            changes["expires_at"], wrong = _deadline(self.edit, self.principal, row, self.now)
            faults += wrong
        return changes

    def _others(self) -> dict[str, Any]:
        edit = self.edit
        changes = {name: getattr(edit, name) for name in edit.model_fields_set & _CLEARABLE}
        changes |= {name: value for name in _AIM if (value := getattr(edit, name)) is not None}
        if edit.notify_on is not None:
            changes["notify_on"] = frozenset(edit.notify_on)
        return changes

    def _aimed(self, before: Watch, after: Watch) -> Watch:
        if (after.condition, after.verifier, after.trigger) != (before.condition, before.verifier, before.trigger):
            return replace(
                after,
                generation=before.generation + 1,
                memory=Memory(),
                behaviour_digest=self.verifiers.behaviour_digest(after.verifier),
                next_check_at=next_check(after, self.now, 0.0),
            )
        soonest = next_check(after, self.now, after.interval_s)
        if after.interval_s == before.interval_s or soonest is None or after.next_check_at is None:
            return after
        return replace(after, next_check_at=min(after.next_check_at, soonest))


def require_readable(watch: Watch) -> None:
    """Refuse what cannot be done to a watch of which nothing is known.

    Raises:
        WrongState: its record cannot be read.
    """
    if watch.fault is not None:
        raise WrongState([f"watch {watch.id}: {watch.fault}; cancel, clear or replace it"])


_CLEARABLE = frozenset({"stall_after", "run_prompt", "run_session"})
_AIM = ("condition", "trigger", "repeat")


def _deadline(edit: WatchEdit, principal: Principal, row: Policy, now: datetime) -> tuple[datetime | None, list[str]]:
    if edit.clear_deadline:
        if edit.deadline is not None or edit.expires_in_s is not None:
            return None, ["only one of clear_deadline, deadline and expires_in_s"]
        return None, [] if principal.is_operator else ["clear_deadline: only an operator lets a watch live for ever"]
    if edit.deadline is not None:
        return absolute_deadline(edit.deadline, principal, row, now)
    if edit.expires_in_s is None:
        return None, ["expires_in_s: clear_deadline removes the deadline"]
    return now + timedelta(seconds=edit.expires_in_s), window_faults(edit.expires_in_s, row)
