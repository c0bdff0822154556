"""What a check's result does to its watch: one pure function (spec watches 3)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from hankwatch.watches.policies import AtExpiry, OnCheckChanged, Policy, policy
from hankwatch.watches.specs import EventSpec, TimeSpec
from hankwatch.watches.watch import EndReason, ErrorKind, Memory, Observation, Outcome, Signal, Status, Trigger, Watch

BROKEN_AFTER: Final = 5
"""Checks in a row without a claim."""
FLAPPING_FIRES: Final = 5
"""Of the last ten settled checks."""
SETTLED_CHECKS: Final = 5
"""In a row without a fire end a flapping episode."""
JITTER: Final = 0.05
"""Of the interval, at most, added."""
MAX_BACKOFF_S: Final = 600.0
"""Longest wait after checks without a claim, unless the interval itself is longer."""
_RECENT: Final = (1 << 10) - 1


@dataclass(frozen=True, slots=True)
class Raised:
    """A signal that a decision raises."""

    signal: Signal
    fire: int | None
    """Number of the fire, counted over the watch's life; None for what is no fire."""
    reason: str
    value: Any = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What one evaluation comes to; committed as a whole."""

    watch: Watch
    """As it is from now on."""
    raised: tuple[Raised, ...]
    """In order; at most one of them is a fire."""


def next_check(watch: Watch, now: datetime, wait_s: float, jitter: float = 0.0) -> datetime | None:
    """When a watch is looked at again, ``wait_s`` from now at the earliest; None for what only an event moves."""
    spec = watch.verifier
    if isinstance(spec, EventSpec):
        return None
    if isinstance(spec, TimeSpec) and spec.at is not None and spec.at > now:
        return spec.at
    return now + timedelta(seconds=wait_s * (1 + JITTER * jitter))


def expire(watch: Watch, now: datetime) -> Decision:
    """The end of a watch at its deadline without a check, which never fires."""
    ended = _ended(watch, EndReason.EXPIRED, now)
    return Decision(ended, (Raised(Signal.EXPIRED, None, EndReason.EXPIRED),))


def end(watch: Watch, reason: EndReason, now: datetime) -> Decision:
    """The end of a watch that no check decided: cancelled, rejected, access revoked, check changed."""
    return Decision(_ended(watch, reason, now), (Raised(reason.signal, None, reason),))


def decide(watch: Watch, seen: Observation, now: datetime, *, jitter: float = 0.0) -> Decision:
    """The watch after a check, and what it tells.

    At or after the deadline the check is the final one. ``unavailable`` makes no claim: edge memory, baseline
    and stall streak stay as they are. A one-shot ends with exactly one fire.

    Args:
        watch: Active, of the generation that was checked.
        seen: What the check said.
        now: The instant of the decision, aware, UTC.
        jitter: 0 to 1, random; spreads the next check over ``JITTER`` of the interval.
    """
    row = policy(watch.kind)
    is_final = watch.expires_at is not None and now >= watch.expires_at
    if is_final and row.at_expiry is AtExpiry.NEVER_FIRES:
        return expire(watch, now)
    checked = replace(
        watch,
        check_count=watch.check_count + 1,
        last_checked_at=now,
        last_outcome=seen.outcome,
        last_reason=seen.reason,
        last_evidence=seen.evidence,
    )
    if seen.outcome is Outcome.UNAVAILABLE:
        return _unclaimed(checked, seen, now, row, jitter, is_final=is_final)
    return _settled(checked, seen, now, jitter, is_final=is_final)


def _unclaimed(
    watch: Watch, seen: Observation, now: datetime, row: Policy, jitter: float, *, is_final: bool
) -> Decision:
    if seen.error is ErrorKind.CHECK_CHANGED and row.on_check_changed is OnCheckChanged.END:
        return end(watch, EndReason.CHECK_CHANGED, now)
    if is_final:
        return expire(watch, now)
    errors = watch.memory.consecutive_errors + 1
    breaks = errors >= BROKEN_AFTER and not watch.memory.broken
    memory = replace(watch.memory, consecutive_errors=errors, broken=watch.memory.broken or breaks)
    raised = (Raised(Signal.BROKEN, None, seen.reason, evidence=seen.text),) if breaks else ()
    wait_s = min(watch.interval_s * 2.0 ** min(errors - 1, 20), max(watch.interval_s, MAX_BACKOFF_S))
    return Decision(_next(replace(watch, memory=memory), now, wait_s, jitter), raised)


def _settled(watch: Watch, seen: Observation, now: datetime, jitter: float, *, is_final: bool) -> Decision:
    before, raised = watch.memory, list[Raised]()
    if before.broken:
        raised.append(Raised(Signal.RECOVERED, None, seen.reason))
    memory = replace(before, consecutive_errors=0, broken=False)
    if seen.outcome is Outcome.TERMINAL_UNSATISFIED:
        raised.append(Raised(Signal.IMPOSSIBLE, None, seen.reason, seen.value, seen.evidence))
        return Decision(_ended(replace(watch, memory=memory), EndReason.IMPOSSIBLE, now), tuple(raised))
    fires = _fires(watch, seen)
    memory = _remember(watch, memory, seen, fires=fires)
    watch = replace(watch, memory=memory, fire_count=watch.fire_count + fires)
    if fires:
        signal = Signal.MET if watch.trigger is Trigger.MET else Signal.CHANGED
        raised.append(Raised(signal, watch.fire_count, seen.reason, seen.value, seen.evidence))
        if not watch.repeat:
            reason = EndReason.SATISFIED if watch.trigger is Trigger.MET else EndReason.CHANGED
            return Decision(_ended(watch, reason, now), tuple(raised))
    if is_final:
        last = expire(watch, now)
        return Decision(last.watch, (*raised, *last.raised))
    raised += _episodes(watch, before, seen)
    return Decision(_next(watch, now, watch.interval_s, jitter), tuple(raised))


def _fires(watch: Watch, seen: Observation) -> bool:
    if watch.trigger is Trigger.CHANGE:
        return watch.memory.baseline is not None and watch.memory.baseline != seen.digest
    # A one-shot that finds its condition true ends, even when a repeating past has seen that edge.
    return seen.outcome is Outcome.SATISFIED and not (watch.memory.was_met and watch.repeat)


def _remember(watch: Watch, memory: Memory, seen: Observation, *, fires: bool) -> Memory:
    unchanged = not fires and memory.last_digest is not None and memory.last_digest == seen.digest
    streak = memory.stall_streak + 1 if unchanged else 0
    recent = ((memory.recent_fires << 1) | fires) & _RECENT
    settled = not recent & ((1 << SETTLED_CHECKS) - 1)
    return replace(
        memory,
        was_met=seen.outcome is Outcome.SATISFIED and not isinstance(watch.verifier, EventSpec),  # an event is over
        baseline=seen.digest if watch.trigger is Trigger.CHANGE else memory.baseline,
        last_digest=seen.digest,
        stall_streak=streak,
        stalled=unchanged and (memory.stalled or (watch.stall_after is not None and streak >= watch.stall_after)),
        recent_fires=0 if settled else recent,
        flapping=not settled and (memory.flapping or recent.bit_count() >= FLAPPING_FIRES),
        consecutive_fires=memory.consecutive_fires + 1 if fires else 0,
    )


def _episodes(watch: Watch, before: Memory, seen: Observation) -> list[Raised]:
    """What has just begun: each episode is told once."""
    raised = list[Raised]()
    if watch.memory.stalled and not before.stalled:
        raised.append(Raised(Signal.STALLED, None, f"unchanged-{watch.memory.stall_streak}", seen.value, seen.evidence))
    if watch.memory.flapping and not before.flapping:
        raised.append(Raised(Signal.FLAPPING, None, f"{watch.memory.recent_fires.bit_count()}-fires-of-10"))
    return raised


def _next(watch: Watch, now: datetime, wait_s: float, jitter: float) -> Watch:
    return replace(watch, next_check_at=next_check(watch, now, wait_s, jitter))


def _ended(watch: Watch, reason: EndReason, now: datetime) -> Watch:
    return replace(watch, status=Status.ENDED, end_reason=reason, finished_at=now, next_check_at=None)
