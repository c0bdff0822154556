"""Watches in words: what ``watch …`` prints. Text of the watched world comes out as one harmless line."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console

from hankwatch.cli.event_lines import one_line
from hankwatch.cli.terminal import table
from hankwatch.core.text import shorten
from hankwatch.pages.words import duration
from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.roll import Liveness
from hankwatch.watches.service import Armed, described
from hankwatch.watches.specs import CheckSpec, CommandSpec, DocumentSpec, EventSpec, TimeSpec, VerifierSpec
from hankwatch.watches.watch import Status, Watch

POLLED_S: Final = 15.0
"""An engine says every five seconds that it looks; after three times that it does not."""
_SEEN_CHARS: Final = 60
_LONG_CHARS: Final = 160
_TOLD: Final = ("held", "suppressed", "dead")
"""Ends of deliveries that a list names."""
WAKE_WAITS: Final = "wake-waits"
_ENGINE: Final = "run `hankwatch watch engine`, or a hank in its home"


def counted(deliveries: Iterable[Delivery]) -> Counter[tuple[str, str]]:
    """How many deliveries of each watch went wrong, and how many wakes wait for their session."""
    counts = Counter[tuple[str, str]]()
    for one in deliveries:
        if one.channel is Channel.EVENT:
            continue
        if one.status.value in _TOLD:
            counts[one.watch_id, one.status.value] += 1
        elif one.channel is Channel.WAKE and one.status is not DeliveryStatus.DELIVERED:
            counts[one.watch_id, WAKE_WAITS] += 1
    return counts


def armed(made: Armed, now: datetime) -> str:
    """What became of a request."""
    watch = made.watch
    if not made.is_new:
        return f"{watch.id} waits for the same already; its id stands"
    if watch.status is Status.PROPOSED:
        return f"{watch.id} is proposed; `hankwatch watch approve {watch.id}` activates it"
    return f"{watch.id} is armed: {_how(watch.verifier, watch)}{_until(watch, now)}"


def stands(watch: Watch, now: datetime) -> str:
    """A watch in one line."""
    state = "active" if watch.status is Status.ACTIVE else _state(watch)
    more = _until(watch, now) if watch.status is Status.ACTIVE else ""
    return f"{watch.id} is {state}{more}{_last(watch)}"


def checked(before: Watch, after: Watch) -> str:
    """What a check has found."""
    if after.check_count == before.check_count and after.last_checked_at == before.last_checked_at:
        return f"{after.id} is being checked by another process"
    fired = after.fire_count - before.fire_count
    return f"{after.id}: {_outcome(after)}{'; it fired' if fired else ''}, {_state(after)}"


def as_json(watch: Watch, told: Mapping[tuple[str, str], int], liveness: Liveness, now: datetime) -> dict[str, Any]:
    """One line of ``list --json``."""
    looked = liveness.last_loop_at
    return {
        **described(watch),
        "overdue_s": round(_overdue_s(watch, now), 3),
        "last_looked_at": None if looked is None else looked.isoformat(),
        "deliveries": {state: count for (watch_id, state), count in sorted(told.items()) if watch_id == watch.id},
    }


def whole_json(watch: Watch, checks: Sequence[Evaluation], told: Sequence[Delivery]) -> dict[str, Any]:
    """``show --json``."""
    return {
        **described(watch),
        "evaluations": [
            {
                "number": one.number,
                "generation": one.generation,
                "observed_at": one.observed_at.isoformat(),
                "late_s": one.late_s,
                "outcome": one.outcome.value,
                "reason": one.reason,
                "digest": one.digest,
                "text": one.text,
                "evidence": one.evidence,
                "error": None if one.error is None else one.error.value,
            }
            for one in checks
        ],
        "deliveries": [
            {
                "id": one.id,
                "channel": one.channel.value,
                "signal": one.signal.value,
                "status": one.status.value,
                "reason": one.reason,
                "attempts": one.attempts,
                "created_at": one.created_at.isoformat(),
                "finished_at": None if one.finished_at is None else one.finished_at.isoformat(),
            }
            for one in told
        ],
    }


def print_watches(
    console: Console, watches: Sequence[Watch], told: Mapping[tuple[str, str], int], now: datetime
) -> None:
    """The table of ``list``."""
    if not watches:
        console.print("No watches.")
        return
    rows = table("watch", "state", "next check", "fired", "last seen", "notes")
    for watch in watches:
        rows.add_row(
            watch.id,
            _state(watch),
            _next(watch, now),
            f"{watch.fire_count}×" if watch.fire_count else "",
            shorten(_seen(watch), _SEEN_CHARS),
            ", ".join(_notes(watch, told, now)),
        )
    console.print(rows)


def print_notices(console: Console, notices: Sequence[Delivery], now: datetime) -> None:
    """What is told to people, newest first."""
    if not notices:
        return
    console.print("\nNotifications")
    for one in notices:
        about = one.content.get("condition") or one.content.get("reason") or ""
        ago = duration((now - one.created_at).total_seconds() * 1000)
        line = f"  {ago} ago  {one.signal.value:<10} {one.watch_id}: {shorten(one_line(str(about)), _LONG_CHARS)}"
        console.print(line, markup=False, soft_wrap=True)


def print_watch(
    console: Console, watch: Watch, checks: Sequence[Evaluation], told: Sequence[Delivery], now: datetime
) -> None:
    """``show``."""
    facts = {
        "condition": watch.condition,
        "kind": watch.kind.value,
        "state": _state(watch),
        "checked": _how(watch.verifier, watch),
        "fires on": watch.trigger.value + (", each time" if watch.repeat else ", once"),
        "fired": f"{watch.fire_count}×",
        "next check": _next(watch, now),
        "deadline": "never" if watch.expires_at is None else watch.expires_at.isoformat(timespec="seconds"),
        "owner": watch.owner,
        "session": watch.run_session or watch.session or "",
        "home": watch.home or "",
        "prompt": watch.run_prompt or "",
        "last seen": _seen(watch),
        "latest": f"{watch.max_lateness_s:g} s after it was due" if watch.max_lateness_s else "",
    }
    console.print(f"{watch.id}", style="bold", markup=False)
    for name, value in facts.items():
        if value:
            console.print(f"  {name:<11} {shorten(one_line(value), 4 * _LONG_CHARS)}", markup=False, soft_wrap=True)
    if checks:
        rows = table("checked", "outcome", "reason", "seen", title="\nLatest checks")
        for one in checks:
            seen = shorten(one_line(one.text or one.evidence), _SEEN_CHARS)
            rows.add_row(_clock(one.observed_at), one.outcome.value, one.reason, seen)
        console.print(rows)
    if told:
        rows = table("when", "told", "how", "state", "reason", title="\nDeliveries")
        for delivery in told:
            reason = shorten(one_line(delivery.reason or ""), _SEEN_CHARS)
            row = (delivery.signal.value, delivery.channel.value, delivery.status.value, reason)
            rows.add_row(_clock(delivery.created_at), *row)
        console.print(rows)


def print_changes(console: Console, changes: Mapping[str, Sequence[str]]) -> None:
    """What an applied set has changed."""
    rows = table("watch", "is")
    for word, ids in changes.items():
        for watch_id in ids:
            rows.add_row(watch_id, word)
    console.print(rows if rows.row_count else "Nothing was armed, and nothing is.")


def not_looked_at(watches: Sequence[Watch], liveness: Liveness, now: datetime) -> str | None:
    """What to do when active watches are not polled (spec watches 8, 14)."""
    active = [watch for watch in watches if watch.status is Status.ACTIVE]
    if not active:
        return None
    looked = liveness.last_loop_at
    if looked is None:
        return f"not polled: no engine looks; {_ENGINE}"
    if (now - looked).total_seconds() > POLLED_S:
        return f"not polled since {looked.isoformat(timespec='seconds')}; {_ENGINE}"
    late = [watch for watch in active if _overdue_s(watch, now) > POLLED_S]
    if late:
        return f"not polled: {', '.join(watch.id for watch in late[:5])} is overdue, no engine minds it; {_ENGINE}"
    return None


def _notes(watch: Watch, told: Mapping[tuple[str, str], int], now: datetime) -> list[str]:
    memory, notes = watch.memory, list[str]()
    if memory.flapping:
        notes.append("flapping")
    if memory.broken:
        notes.append("broken")
    if memory.stalled:
        notes.append("stalled")
    if _overdue_s(watch, now) > POLLED_S:
        notes.append("not polled")
    notes += [f"{told[watch.id, state]} {state}" for state in _TOLD if (watch.id, state) in told]
    if (waiting := told.get((watch.id, WAKE_WAITS), 0)) > 0:
        notes.append(f"{waiting} wake{'s' * (waiting != 1)} waiting")
    return notes


def _overdue_s(watch: Watch, now: datetime) -> float:
    due = [at for at in (watch.next_check_at, watch.expires_at) if at is not None]
    if watch.status is not Status.ACTIVE or not due:
        return 0.0
    return max(0.0, (now - min(due)).total_seconds())


def _state(watch: Watch) -> str:
    if watch.status is not Status.ENDED or watch.end_reason is None:
        return watch.status.value
    return f"ended: {watch.end_reason.value.replace('_', ' ')}"


def _next(watch: Watch, now: datetime) -> str:
    if watch.status is not Status.ACTIVE:
        return ""
    if watch.next_check_at is None:
        return "on its event"
    left_s = (watch.next_check_at - now).total_seconds()
    return f"in {_time(left_s)}" if left_s > 0 else "now"


def _until(watch: Watch, now: datetime) -> str:
    if watch.expires_at is None:
        return ", for ever"
    return f", gives up in {_time((watch.expires_at - now).total_seconds())}"


def _time(seconds: float) -> str:
    return duration(max(1_000, round(seconds) * 1000)).replace(".0 s", " s")


def _clock(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _how(spec: VerifierSpec, watch: Watch) -> str:
    every = f"every {_time(watch.interval_s)}"
    match spec:
        case EventSpec():
            return "on an event of its home"
        case TimeSpec():
            return f"at {spec.at.isoformat(timespec='seconds')}" if spec.at is not None else "at its time"
        case DocumentSpec():
            return f"{every}, document {spec.path}{spec.pointer or ''}"
        case CommandSpec():
            command = spec.command if isinstance(spec.command, str) else " ".join(spec.command)
            return f"{every}, command {shorten(one_line(command), _LONG_CHARS)}"
        case CheckSpec():
            return f"{every}, check {spec.name}{'@' + spec.version if spec.version else ''}"


def _outcome(watch: Watch) -> str:
    outcome = "not checked yet" if watch.last_outcome is None else watch.last_outcome.value.replace("_", " ")
    return f"{outcome} ({one_line(watch.last_reason)})" if watch.last_reason else outcome


def _seen(watch: Watch) -> str:
    if watch.last_outcome is None:
        return ""
    evidence = f": {one_line(watch.last_evidence)}" if watch.last_evidence else ""
    return f"{_outcome(watch)}{evidence}"


def _last(watch: Watch) -> str:
    return f"; {shorten(_seen(watch), _LONG_CHARS)}" if watch.last_outcome is not None else ""
