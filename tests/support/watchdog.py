"""Feeds for the core of the loop watchdog: labelled cases, and rounds in few words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from hankwatch.watchdog.core import WatchdogCore
from hankwatch.watchdog.policy import ToolClass, WatchdogPolicy
from hankwatch.watchdog.signals import (
    Action,
    Call,
    Channel,
    Delta,
    Nudge,
    Result,
    Retry,
    RoundEnd,
    RoundStart,
    Signal,
    TurnStart,
)

Feed = tuple[Signal, float]
"""A signal and its instant in seconds."""
Cut = Callable[[str], Iterable[str]]
"""A text -> the deltas it arrives in."""


def run(feeds: Iterable[Feed], **policy: Any) -> list[Action]:
    """All actions of a new watchdog over these feeds."""
    watchdog = WatchdogCore(WatchdogPolicy(**policy))
    return [action for signal, at_s in feeds for action in watchdog.feed(signal, at_s)]


def watch(case: Mapping[str, Any], cut: Cut | None = None, **policy: Any) -> list[Action]:
    """The actions in a labelled case; with ``cut``, its text arrives in other deltas."""
    return run(feeds_of(case, cut), **case.get("policy", {}), **policy)


def as_expected(action: Action) -> dict[str, Any]:
    """An action as the cases write it."""
    if isinstance(action, Nudge):
        return {"round": action.round, "act": "nudge", "kind": action.kind}
    return {"round": action.round, "act": "interrupt"}


def feeds_of(case: Mapping[str, Any], cut: Cut | None = None) -> Iterator[Feed]:
    """A case as its notes say: round start, thinking, text, calls, results, time passes, round end."""
    ids, at_s = count(1), 0.0
    for turn in case["turns"]:
        yield TurnStart(), at_s
        for told in turn["rounds"]:
            yield RoundStart(), at_s
            if "voided" in told:
                yield from ((signal, at_s) for signal in _said(told["voided"], cut))
                yield from ((_call(next(ids), call), at_s) for call in told["voided"].get("calls", ()))
                yield Retry(), at_s
            yield from ((signal, at_s) for signal in _said(told, cut))
            calls = [(_call(next(ids), call), call) for call in told.get("calls", ())]
            yield from ((signal, at_s) for signal, _ in calls)
            yield from ((Result(made.id, call["outcome"], call["result"]), at_s) for made, call in calls)
            at_s += told["dt"]
            yield RoundEnd(), at_s


def call(
    name: str, outcome: str = "ok", result: str = "", *, tool_class: ToolClass | None = None, **args: Any
) -> dict[str, Any]:
    """A call as the cases write it."""
    return {"name": name, "args": args, "outcome": outcome, "result": result, "class": tool_class}


def a_turn(*rounds: Mapping[str, Any]) -> dict[str, Any]:
    """A case of one turn; a round without ``dt`` takes ten seconds."""
    return {"turns": [{"rounds": [{"dt": 10.0, **told} for told in rounds]}]}


def calling(*calls: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A round that makes these calls."""
    return {"calls": list(calls), **more}


def _said(told: Mapping[str, Any], cut: Cut | None) -> Iterator[Delta]:
    channels: tuple[tuple[Channel, str], ...] = (("thinking", "think"), ("text", "text"))
    for channel, key in channels:
        pieces = told.get(key) or []
        pieces = [pieces] if isinstance(pieces, str) else pieces
        for piece in cut("".join(pieces)) if cut else pieces:
            yield Delta(channel, piece)


def _call(number: int, told: Mapping[str, Any]) -> Call:
    return Call(f"call-{number}", told["name"], told["args"], told.get("class"))
