"""What an event says, in a line."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from hankwatch.events.envelope import Event, EventData
from hankwatch.pages.words import money

_PATHS = 5
_FAILURES = frozenset({"error", "rig.setup.failed", "sentinel.error"})


def gist(event: Event) -> str:
    """What an event says, as it says it: it may be long and hold lines, controls, anything."""
    data = event.data
    say = _GISTS.get(event.type)
    if say is not None:
        return say(data)
    if event.type.startswith("watch."):
        return " ".join(str(part) for part in map(data.get, ("watchId", "condition", "reason")) if part)
    if isinstance(data.get("message"), str):
        return " ".join(filter(None, (data.get("sentinelId"), data["message"])))
    return json.dumps(data, ensure_ascii=False)


def is_failure(event: Event) -> bool:
    """Whether it says that something failed."""
    if event.type == "codon.completed":
        return event.data.get("success") is False
    return event.data.get("isError") is True or event.type in _FAILURES


def _action(data: EventData) -> str:
    if data.get("action") == "tool_use":
        return f"{data.get('toolName')} {json.dumps(data.get('toolInput'), ensure_ascii=False)}"
    return f"{data.get('action')}: {data.get('content')}"


def _result(data: EventData) -> str:
    outcome = data.get("outcome") or ("error" if data.get("isError") else "ok")
    return f"{data.get('toolName')} {outcome}: {data.get('result')}"


def _usage(data: EventData) -> str:
    total = " in all" if data.get("isFinal") else ""
    return f"{data.get('inputTokens')} in, {data.get('outputTokens')} out{total}, {_cost(data, 'totalCost')}"


def _transition(data: EventData) -> str:
    inner = data.get("transition")
    moved = inner.get("data") if isinstance(inner, dict) else None
    change = f"{moved.get('from')} → {moved.get('to')}" if isinstance(moved, dict) and "to" in moved else ""
    return " ".join(str(part) for part in (data.get("transitionType"), data.get("codonId"), change) if part)


def _completed(data: EventData) -> str:
    # What failed has a reason; what was skipped, by order or for want of a budget, has none.
    outcome = "succeeded" if data.get("success") else "failed" if data.get("failureReason") else "not completed"
    return f"{data.get('codonId')} {outcome}, {_cost(data, 'cost')}, {data.get('duration')} ms"


def _rig_failed(data: EventData) -> str:
    ignored = ", ignored" if data.get("ignored") else ""
    exit_code = f", exit code {data['exitCode']}" if data.get("exitCode") is not None else ""
    return f"{data.get('codonId')} operation {data.get('commandIndex')} {data.get('failureType')}{exit_code}{ignored}"


def _some(paths: Any) -> str:
    """The first of them; a failed one with its reason."""
    if not isinstance(paths, list):
        return str(paths)
    names = [f"{p.get('path')} ({p.get('error')})" if isinstance(p, dict) else str(p) for p in paths[:_PATHS]]
    more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
    return ", ".join(names) + more


def _cost(data: EventData, key: str) -> str:
    value = data.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return money(value) if is_number else "cost unknown"


def _events(data: EventData) -> str:
    count = data.get("eventCount")
    return "1 event" if count == 1 else f"{count} events"


def _calls(data: EventData) -> str:
    count = data.get("llmCallCount")
    return "1 call" if count == 1 else f"{count} calls"


def evidence(detail: Any) -> str:
    """What the loop watchdog goes by, as its events tell it: how often, which tools, in which channel."""
    told: Mapping[str, Any] = detail if isinstance(detail, dict) else {}
    tools = told.get("tools")
    parts = [f"{told['count']} ×"] if "count" in told else []
    parts += [", ".join(map(str, tools))] if isinstance(tools, list) and tools else []
    parts += [f"in its {told['channel']}"] if "channel" in told else []
    parts += ["(sub-agent)"] if "parentToolUseId" in told else []
    return " ".join(parts)


def _finding(data: EventData) -> str:
    found = f"{data.get('trigger')} in round {data.get('round')}, {evidence(data.get('detail'))}".removesuffix(", ")
    return f"{found} (observed only)" if data.get("observed") is True else found


def _list(data: EventData, key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _budget(data: EventData) -> str:
    rows = [row for row in _list(data, "rows") if isinstance(row, dict)]
    reached = [str(row.get("codonId")) for row in rows if row.get("status") == "exceeded"]
    totals = data.get("totals")
    spent = totals if isinstance(totals, dict) else {}
    told = f"{_cost(spent, 'actualDollars')} and {spent.get('actualTimeSeconds')} s of agents"
    return f"{told}; limit reached: {', '.join(reached)}" if reached else f"{told}; no limit reached"


_GISTS: Mapping[str, Callable[[EventData], str]] = {
    "assistant.action": _action,
    "tool.result": _result,
    "token.usage": _usage,
    "state.transition": _transition,
    "codon.started": lambda d: (
        f"{d.get('codonId')} ({d.get('codonName')}), session {d.get('sessionId') or 'unknown yet'}"
    ),
    "codon.completed": _completed,
    "file.updated": lambda d: f"{d.get('path')} {d.get('action')}",
    "rig.output": lambda d: f"{d.get('stream')}: {d.get('line')}",
    "sentinel.loaded": lambda d: (
        f"{d.get('sentinelId')} on {d.get('triggerType')}, {d.get('executionStrategy')}, {d.get('model')}"
    ),
    "sentinel.triggered": lambda d: (
        f"{d.get('sentinelId')} #{d.get('triggerNumber')} on {_events(d)} ({d.get('cause')})"
    ),
    "sentinel.output": lambda d: f"{d.get('sentinelId')} #{d.get('triggerNumber')}: {d.get('content')}",
    "sentinel.unloaded": lambda d: f"{d.get('sentinelId')} {d.get('reason')}, {_calls(d)}",
    "watchdog.nudge": lambda d: f"{_finding(d)}{' (not delivered)' * (d.get('delivered') is False)}: {d.get('text')}",
    "watchdog.interrupt": _finding,
    "loop.iteration.completed": lambda d: (
        f"{d.get('loopId')} iteration {d.get('iteration')}, {_cost(d, 'costUsd')}"
        + (f", last one: {d.get('terminationReason') or 'done'}" if d.get("isFinal") else "")
    ),
    "codon.extended": lambda d: f"{d.get('codonId')} prompted again (extension {d.get('extensionNumber')})",
    "checkpoint.list": lambda d: f"{len(_list(d, 'checkpoints'))} checkpoint(s) of run {d.get('runId')}",
    "budget.summary": _budget,
    "rig.setup.completed": lambda d: f"{d.get('codonId')} rig ready after {d.get('durationMs')} ms",
    "rig.setup.failed": _rig_failed,
    "archive.completed": lambda d: f"{d.get('codonId')} archived {_some(d.get('archivedPaths'))}",
    "archive.partial": lambda d: (
        f"{d.get('codonId')} archived {_some(d.get('archivedPaths'))}, but not {_some(d.get('failedPaths'))}"
    ),
    "rollback.started": lambda d: f"{d.get('fromCodon')} back to {d.get('toCodon')} ({d.get('toCheckpoint')})",
    "rollback.completed": lambda d: f"{d.get('codonName')}, work goes on in run {d.get('toRun')}",
    "journal.repaired": lambda d: f"a torn line of {d.get('bytes')} bytes: {d.get('action')}",
    "watch.delivery": lambda d: f"{d.get('watchId')} {d.get('channel')} {d.get('status')}: {d.get('reason')}",
}
