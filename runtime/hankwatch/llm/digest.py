"""A factual summary of events: what ``builtin/digest`` replies.

Reads envelopes as they stand in a journal, foreign ones included: a payload that lacks a field, or has
another type in it, is summed up by what it does have.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hankwatch.core.text import shorten, strip_controls

_SHOWN: Final = 20
"""Entries of a list that are written out; the rest is counted."""
_TOKEN_KINDS: Final = {
    "inputTokens": "in",
    "outputTokens": "out",
    "cacheCreationTokens": "cache write",
    "cacheReadTokens": "cache read",
}


def digest(events: Sequence[Mapping[str, Any]]) -> str:
    """What happened in ``events`` as Markdown: counts by type, actions, tools, errors, files, cost and tokens.

    Deterministic: lists are in order of count, then of first appearance; of each error the first line and, of a tool's, the last.
    """
    if not events:
        return "# No events\n"
    plural = "" if len(events) == 1 else "s"
    sections = [
        f"# {len(events)} event{plural}, {events[0]['timestamp']} to {events[-1]['timestamp']}\n",
        _section("Types", _types(events)),
        _section("Actions", _actions(events)),
        _section("Tools", _tools(events)),
        _section("Errors", _errors(events)),
        _section("Files", _files(events)),
        _section("Usage", _usage(events)),
    ]
    return "\n".join(filter(None, sections))


def _section(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    rest = [f"- … {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return f"## {title}\n\n" + "\n".join([*lines[:_SHOWN], *rest]) + "\n"


def _types(events: Iterable[Mapping[str, Any]]) -> list[str]:
    counts = Counter(event["type"] for event in events)
    return [f"- {_inline(kind)}: {count}" for kind, count in counts.most_common()]


def _actions(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the agent said and called, in order."""
    lines = []
    for event in events:
        data = event["data"]
        if event["type"] != "assistant.action":
            continue
        if data.get("action") == "tool_use":
            call = json.dumps(data.get("toolInput") or {}, ensure_ascii=False)
            lines.append(f"- {_inline(data.get('toolName') or '(unnamed)')} {_inline(call)}")
        else:
            lines.append(f"- {_inline(data.get('action'))}: {_inline(data.get('content'))}")
    return lines


def _tools(events: Iterable[Mapping[str, Any]]) -> list[str]:
    ok: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for event in events:
        if event["type"] == "tool.result":
            tool = _inline(event["data"].get("toolName") or "(unnamed)")
            (failed if event["data"].get("isError") else ok)[tool] += 1
    return [f"- {tool}: {ok[tool]} ok, {failed[tool]} failed" for tool, _ in (ok + failed).most_common()]


def _errors(events: Iterable[Mapping[str, Any]]) -> list[str]:
    texts = Counter(text for event in events if (text := _error(event["type"], event["data"])))
    return [f"- {text}" + (f" ({count} times)" if count > 1 else "") for text, count in texts.items()]


def _error(kind: str, data: Mapping[str, Any]) -> str | None:
    """The first line of what went wrong in one event, or None when nothing did."""
    match kind:
        case "error":
            return f"error: {_inline(data.get('message'))}"
        case "tool.result" if data.get("isError"):
            return f"{_inline(data.get('toolName') or 'tool')}: {_ends(data.get('result'))}"
        case "codon.completed" if data.get("success") is False:
            why = data.get("failureReason")
            reason = why.get("message") or why.get("type") if isinstance(why, Mapping) else why
            return f"codon {_inline(data.get('codonId'))} failed: {_inline(reason)}"
        case "rig.setup.failed":
            return f"rig setup failed: {_inline(data.get('failureType'))}"
        case _:
            return None


def _files(events: Iterable[Mapping[str, Any]]) -> list[str]:
    files: dict[str, Counter[str]] = {}
    for event in events:
        if event["type"] == "file.updated":
            data = event["data"]
            files.setdefault(_inline(data.get("path")), Counter())[_inline(data.get("action"))] += 1
    return [
        f"- {path}: " + ", ".join(action if count == 1 else f"{action} {count} times" for action, count in seen.items())
        for path, seen in files.items()
    ]


def _usage(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Cost and tokens of each codon; its totals, once reported, replace the increments before them."""
    costs: dict[str, list[float | None]] = {}
    tokens: dict[str, Counter[str]] = {}
    for event in events:
        kind, data = event["type"], event["data"]
        if kind not in {"token.usage", "codon.completed"}:
            continue
        codon = _inline(data.get("codonId"))
        if kind == "codon.completed" or data.get("isFinal"):
            costs[codon] = []
        costs.setdefault(codon, []).append(_number(data.get("cost" if kind == "codon.completed" else "totalCost")))
        if kind == "token.usage":
            counts = Counter({name: int(_number(data.get(key)) or 0) for key, name in _TOKEN_KINDS.items()})
            tokens[codon] = counts if data.get("isFinal") else tokens.get(codon, Counter()) + counts
    return [f"- {codon}: {_cost(costs[codon])}{_token_counts(tokens.get(codon, Counter()))}" for codon in costs]


def _cost(costs: Sequence[float | None]) -> str:
    if all(cost is None for cost in costs):
        return "cost unknown"
    at_least = "≥ " if None in costs else ""
    return f"{at_least}{sum(cost or 0.0 for cost in costs):.4f} USD"


def _token_counts(counts: Counter[str]) -> str:
    shown = ", ".join(f"{counts[name]} {name}" for name in _TOKEN_KINDS.values() if counts[name])
    return f"; tokens {shown}" if shown else ""


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _ends(value: object) -> str:
    """First and last line of an error: programs put what it is at either end."""
    lines = strip_controls(str(value or "")).strip().splitlines() or ["(none)"]
    first, last = _inline(lines[0]), _inline(lines[-1])
    return first if len(lines) == 1 else f"{first} … {last}"


def _inline(value: object) -> str:
    """The first line of a value from an event, fit to stand in a list."""
    text = "(none)" if value is None else strip_controls(str(value)).strip()
    return shorten(text.partition("\n")[0], 200)
