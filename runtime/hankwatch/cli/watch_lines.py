"""Watches in words: what ``watch …`` prints. Text of the watched world comes out as one harmless line."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console

from hankwatch.cli.terminal import table
from hankwatch.core.text import one_line, shorten
from hankwatch.pages import watch_words as words
from hankwatch.pages.words import duration
from hankwatch.watches.delivery import Delivery
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.roll import Liveness
from hankwatch.watches.service import Armed, described
from hankwatch.watches.watch import Status, Watch

_SEEN_CHARS: Final = 60


def armed(made: Armed, now: datetime) -> str:
    """What became of a request."""
    watch = made.watch
    if not made.is_new:
        return f"{watch.id} waits for the same already; its id stands"
    if watch.status is Status.PROPOSED:
        return f"{watch.id} is proposed; `hankwatch watch approve {watch.id}` activates it"
    return f"{watch.id} is armed: {words.how(watch.verifier, watch)}{words.until(watch, now)}"


def stands(watch: Watch, now: datetime) -> str:
    """A watch in one line."""
    state = "active" if watch.status is Status.ACTIVE else words.state(watch)
    more = words.until(watch, now) if watch.status is Status.ACTIVE else ""
    return f"{watch.id} is {state}{more}{words.last_seen(watch)}"


def checked(before: Watch, after: Watch) -> str:
    """What a check has found."""
    if after.check_count == before.check_count and after.last_checked_at == before.last_checked_at:
        return f"{after.id} is being checked by another process"
    fired = after.fire_count - before.fire_count
    return f"{after.id}: {words.outcome(after)}{'; it fired' if fired else ''}, {words.state(after)}"


def as_json(watch: Watch, told: Mapping[tuple[str, str], int], liveness: Liveness, now: datetime) -> dict[str, Any]:
    """One line of ``list --json``."""
    looked = liveness.last_loop_at
    return {
        **described(watch),
        "overdue_s": round(words.overdue_s(watch, now), 3),
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
            words.state(watch),
            words.next_look(watch, now),
            f"{watch.fire_count}×" if watch.fire_count else "",
            shorten(words.seen(watch), _SEEN_CHARS),
            ", ".join(words.notes(watch, told, now)),
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
        line = f"  {ago} ago  {one.signal.value:<10} {one.watch_id}: {shorten(one_line(str(about)), words.LONG_CHARS)}"
        console.print(line, markup=False, soft_wrap=True)


def print_watch(
    console: Console, watch: Watch, checks: Sequence[Evaluation], told: Sequence[Delivery], now: datetime
) -> None:
    """``show``."""
    facts = {
        "condition": watch.condition,
        "kind": watch.kind.value,
        "state": words.state(watch),
        "checked": words.how(watch.verifier, watch),
        "fires on": words.fires_on(watch),
        "fired": f"{watch.fire_count}×",
        "next check": words.next_look(watch, now),
        "deadline": "never" if watch.expires_at is None else watch.expires_at.isoformat(timespec="seconds"),
        "owner": watch.owner,
        "session": watch.run_session or watch.session or "",
        "home": watch.home or "",
        "prompt": watch.run_prompt or "",
        "last seen": words.seen(watch),
        "latest": f"{watch.max_lateness_s:g} s after it was due" if watch.max_lateness_s else "",
    }
    console.print(f"{watch.id}", style="bold", markup=False)
    for name, value in facts.items():
        if value:
            console.print(
                f"  {name:<11} {shorten(one_line(value), 4 * words.LONG_CHARS)}", markup=False, soft_wrap=True
            )
    if checks:
        rows = table("checked", "outcome", "reason", "seen", title="\nLatest checks")
        for one in checks:
            seen = shorten(one_line(one.text or one.evidence), _SEEN_CHARS)
            rows.add_row(words.clock(one.observed_at), one.outcome.value, one.reason, seen)
        console.print(rows)
    if told:
        rows = table("when", "told", "how", "state", "reason", title="\nDeliveries")
        for delivery in told:
            reason = shorten(one_line(delivery.reason or ""), _SEEN_CHARS)
            row = (delivery.signal.value, delivery.channel.value, delivery.status.value, reason)
            rows.add_row(words.clock(delivery.created_at), *row)
        console.print(rows)


def print_changes(console: Console, changes: Mapping[str, Sequence[str]]) -> None:
    """What an applied set has changed."""
    rows = table("watch", "is")
    for word, ids in changes.items():
        for watch_id in ids:
            rows.add_row(watch_id, word)
    console.print(rows if rows.row_count else "Nothing was armed, and nothing is.")
