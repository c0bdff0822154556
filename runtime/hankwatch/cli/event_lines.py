"""Events as lines for people."""

import json
from collections.abc import Callable, Mapping

from rich.text import Text

from hankwatch.cli.output import money
from hankwatch.core.text import shorten, strip_controls
from hankwatch.events.envelope import Event, EventData

_QUIET = frozenset({"state.snapshot", "filetree.updated", "sentinel.triggered"})
"""Types that views and plain log lines leave out; ``-v`` shows all."""
_MOVES = frozenset({"CodonTransitioned", "RunStarted", "RunFailed"})


def is_for_people(event: Event) -> bool:
    """Whether an event is worth a line; the others are bookkeeping."""
    if event.type == "state.transition":
        return event.data.get("transitionType") in _MOVES
    return event.type not in _QUIET


def event_line(event: Event, *, width: int = 160) -> Text:
    """One event on one line."""
    return Text.assemble(
        (event.timestamp[11:-1], "dim"), " ", (f"{one_line(event.type):<20}", "cyan"), " ", shorten(gist(event), width)
    )


def gist(event: Event) -> str:
    """What an event says, in one line without control characters."""
    data = event.data
    say = _GISTS.get(event.type)
    if say is not None:
        text = say(data)
    elif isinstance(data.get("message"), str):
        text = " ".join(filter(None, (data.get("sentinelId"), data["message"])))
    else:
        text = json.dumps(data, ensure_ascii=False)
    return one_line(text)


def one_line(text: str) -> str:
    """Text of any origin as one line without control characters."""
    return " ".join(strip_controls(text).split())


def _action(data: EventData) -> str:
    if data.get("action") == "tool_use":
        return f"{data.get('toolName')} {json.dumps(data.get('toolInput'), ensure_ascii=False)}"
    return f"{data.get('action')}: {data.get('content')}"


def _result(data: EventData) -> str:
    outcome = data.get("outcome") or ("error" if data.get("isError") else "ok")
    return f"{data.get('toolName')} {outcome}: {data.get('result')}"


def _usage(data: EventData) -> str:
    total = " in all" if data.get("isFinal") else ""
    return f"{data.get('inputTokens')} in, {data.get('outputTokens')} out{total}, {money(data.get('totalCost'))}"


def _transition(data: EventData) -> str:
    moved = (data.get("transition") or {}).get("data") or {}
    change = f"{moved.get('from')} → {moved.get('to')}" if "to" in moved else ""
    return " ".join(filter(None, (data.get("transitionType"), data.get("codonId"), change)))


def _completed(data: EventData) -> str:
    outcome = "succeeded" if data.get("success") else "failed"
    return f"{data.get('codonId')} {outcome}, {money(data.get('cost'))}, {data.get('duration')} ms"


_GISTS: Mapping[str, Callable[[EventData], str]] = {
    "assistant.action": _action,
    "tool.result": _result,
    "token.usage": _usage,
    "state.transition": _transition,
    "codon.started": lambda d: (
        f"{d.get('codonId')} ({d.get('codonName')}), session {d.get('sessionId') or 'unknown yet'}"
    ),
    "codon.completed": _completed,
    "sentinel.loaded": lambda d: (
        f"{d.get('sentinelId')} on {d.get('triggerType')}, {d.get('executionStrategy')}, {d.get('model')}"
    ),
    "sentinel.triggered": lambda d: (
        f"{d.get('sentinelId')} #{d.get('triggerNumber')} on {d.get('eventCount')} events ({d.get('cause')})"
    ),
    "sentinel.output": lambda d: f"{d.get('sentinelId')} #{d.get('triggerNumber')}: {d.get('content')}",
    "sentinel.unloaded": lambda d: f"{d.get('sentinelId')} {d.get('reason')}, {d.get('llmCallCount')} calls",
}
