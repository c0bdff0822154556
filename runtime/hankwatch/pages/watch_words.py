"""Watches in words, for the terminal and the console; text of the watched world comes out as one harmless line."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, assert_never
from urllib.parse import quote

from hankwatch.core.text import one_line, shorten
from hankwatch.pages.visible import visible
from hankwatch.pages.words import duration
from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus
from hankwatch.watches.instance import Setting
from hankwatch.watches.roll import Liveness
from hankwatch.watches.signals import Told
from hankwatch.watches.specs import CheckSpec, CommandSpec, DocumentSpec, EventSpec, TimeSpec, VerifierSpec
from hankwatch.watches.watch import Signal, Status, Watch

POLLED_S: Final = 15.0
"""An engine says every five seconds that it looks; after three times that it does not."""
LONG_CHARS: Final = 160
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
    late = [watch for watch in active if overdue_s(watch, now) > POLLED_S]
    if late:
        return f"not polled: {', '.join(watch.id for watch in late[:5])} is overdue, no engine minds it; {_ENGINE}"
    return None


def set_here(settings: Iterable[Setting]) -> str | None:
    """What was set for the store, over what is configured; None when nothing is."""
    found = [
        f"{one.name} {str(one.value).lower() if isinstance(one.value, bool) else f'{one.value:g}'}"
        for one in settings
        if one.set_at is not None
    ]
    return f"Set for this store: {', '.join(found)}" if found else None


def notes(watch: Watch, told: Mapping[tuple[str, str], int], now: datetime) -> list[str]:
    """What is the matter with it, one word or two each."""
    memory = watch.memory
    signs = (
        ("unreadable", watch.fault is not None),
        ("flapping", memory.flapping),
        ("broken", memory.broken),
        ("stalled", memory.stalled),
        ("not polled", overdue_s(watch, now) > POLLED_S),
    )
    found = [word for word, holds in signs if holds]
    found += [f"{told[watch.id, state]} {state}" for state in _TOLD if (watch.id, state) in told]
    if (waiting := told.get((watch.id, WAKE_WAITS), 0)) > 0:
        found.append(f"{waiting} wake{'s' * (waiting != 1)} waiting")
    return found


def overdue_s(watch: Watch, now: datetime) -> float:
    """How long it has waited past its check or its end; 0 for what is not overdue."""
    due = [at for at in (watch.next_check_at, watch.expires_at) if at is not None]
    if watch.status is not Status.ACTIVE or not due:
        return 0.0
    return max(0.0, (now - min(due)).total_seconds())


def state(watch: Watch) -> str:
    """``active``, ``proposed``, or how it ended."""
    if watch.status is not Status.ENDED or watch.end_reason is None:
        return watch.status.value
    return f"ended: {watch.end_reason.value.replace('_', ' ')}"


def fires_on(watch: Watch) -> str:
    """What it fires on, and how often."""
    return f"{watch.trigger.value}, {'each time' if watch.repeat else 'once'}"


def next_look(watch: Watch, now: datetime) -> str:
    """When it is checked next; empty for what is not checked any more."""
    if watch.status is not Status.ACTIVE:
        return ""
    if watch.next_check_at is None:
        return "on its event"
    left_s = (watch.next_check_at - now).total_seconds()
    return f"in {time_of(left_s)}" if left_s > 0 else "now"


def until(watch: Watch, now: datetime) -> str:
    """When it gives up, as the end of a sentence."""
    if watch.expires_at is None:
        return ", for ever"
    return f", gives up in {time_of((watch.expires_at - now).total_seconds())}"


def time_of(seconds: float) -> str:
    """``30 s``, ``2 min``; never less than a second."""
    return duration(max(1_000, round(seconds) * 1000)).replace(".0 s", " s")


def clock(at: datetime) -> str:
    """An instant to the second."""
    return at.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def how(spec: VerifierSpec, watch: Watch) -> str:
    """How it is found out whether the condition holds."""
    every = f"every {time_of(watch.interval_s)}"
    match spec:
        case EventSpec():
            return "on an event of its home"
        case TimeSpec():
            return f"at {spec.at.isoformat(timespec='seconds')}" if spec.at is not None else "at its time"
        case DocumentSpec():
            return f"{every}, document {spec.path}{spec.pointer or ''}"
        case CommandSpec():
            command = spec.command if isinstance(spec.command, str) else " ".join(spec.command)
            return f"{every}, command {shorten(one_line(command), LONG_CHARS)}"
        case CheckSpec():
            return f"{every}, check {spec.name}{'@' + spec.version if spec.version else ''}"
        case _:
            assert_never(spec)


def outcome(watch: Watch) -> str:
    """What the last check said, and why."""
    said = "not checked yet" if watch.last_outcome is None else watch.last_outcome.value.replace("_", " ")
    tells_more = watch.last_reason not in {None, said.replace(" ", "-")}
    return f"{said} ({one_line(watch.last_reason or '')})" if tells_more else said


def seen(watch: Watch) -> str:
    """What the last check said and saw; empty before the first."""
    if watch.fault is not None:
        return watch.fault
    if watch.last_outcome is None:
        return ""
    evidence = f": {one_line(watch.last_evidence)}" if watch.last_evidence else ""
    return f"{outcome(watch)}{evidence}"


def last_seen(watch: Watch) -> str:
    """The same as the end of a sentence, shortened."""
    return f"; {shorten(seen(watch), LONG_CHARS)}" if watch.last_outcome is not None else ""


def notice(told: Told) -> dict[str, str]:
    """A signal as a page of the console tells it."""
    watch, word = told.watch, _SAID.get(told.signal, told.signal.value)
    seen_then = shorten(seen(watch), LONG_CHARS)
    return {
        "title": visible(f"{word}: {shorten(one_line(watch.condition), LONG_CHARS)}"),
        "text": visible(f"{watch.id}{' · ' + seen_then if seen_then else ''}"),
        "look": _LOOKS.get(told.signal, ""),
        "href": address(watch.id),
    }


def flood(count: int) -> dict[str, str]:
    """What is told instead of many signals at once."""
    return {"title": f"{count:,} more from watches", "text": "", "look": "warn", "href": "/watches"}


def address(watch_id: str) -> str:
    """The page of a watch; an id that is another page's name too stands before a slash."""
    return f"/watches/{quote(watch_id, safe='')}{'/' if watch_id in _PAGES else ''}"


_PAGES: Final = frozenset({"new", "settings"})
_SAID: Final[Mapping[Signal, str]] = {
    Signal.MET: "Met",
    Signal.CHANGED: "Changed",
    Signal.IMPOSSIBLE: "Became impossible",
    Signal.EXPIRED: "Expired",
    Signal.STALLED: "Stalled",
    Signal.BROKEN: "Cannot be checked",
    Signal.FLAPPING: "Flapping",
}
_LOOKS: Final[Mapping[Signal, str]] = {
    Signal.MET: "good",
    Signal.CHANGED: "good",
    Signal.IMPOSSIBLE: "bad",
    Signal.BROKEN: "bad",
    Signal.EXPIRED: "warn",
    Signal.STALLED: "warn",
    Signal.FLAPPING: "warn",
}
