"""Codex: ``codex exec --json``."""

from collections.abc import Iterator

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.records import Record, joined_text
from hankwatch.agents.signals import (
    CallOutcome,
    Reported,
    Result,
    Retried,
    Signal,
    Spoke,
    Started,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)

_STATE_KEYS = frozenset({"id", "type", "status", "aggregated_output", "exit_code", "result", "error"})
_SPEECH = frozenset({"agent_message", "reasoning", "error", "todo_list"})


class CodexDialect(TableDialect):
    """Reads threads, turns and items; every item that is no speech is a tool call.

    Item ids begin anew in each process, so a call's id is thread, process (from the second on) and item. The stated usage runs from
    the thread's start; it is reported as one ever-growing message, so only its growth counts. Cached
    input is part of the stated input and is taken out of it here.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "thread.started": self._thread,
                "item.started": self._item_started,
                "item.completed": self._item_completed,
                "turn.completed": self._turn_completed,
                "turn.failed": self._turn_failed,
                "error": self._error,
            }
        )
        self._thread_id = ""
        self._processes = 0
        self._prefix = ""
        self._open: set[str] = set()
        self._answer = ""

    def _thread(self, record: Record) -> Iterator[Signal]:
        thread_id = record.text("thread_id")
        self._processes += 1
        self._prefix = thread_id if self._processes == 1 else f"{thread_id}:{self._processes}"
        self._thread_id = thread_id
        yield Started(thread_id)

    def _item_started(self, record: Record) -> Iterator[Signal]:
        item = record.child("item")
        # A search's query is empty until it has ended.
        if item.text("type") not in _SPEECH | {"web_search"}:
            yield self._call(item)

    def _call(self, item: Record) -> ToolUsed:
        call = self._key(item)
        self._open.add(call)
        kind = item.text("type")
        if kind == "mcp_tool_call":
            return ToolUsed(call, f"mcp__{item.text('server')}__{item.text('tool')}", item.child("arguments").raw)
        return ToolUsed(call, kind, {key: value for key, value in item.raw.items() if key not in _STATE_KEYS})

    def _item_completed(self, record: Record) -> Iterator[Signal]:
        item = record.child("item")
        match item.text("type"):
            case "agent_message":
                self._answer = item.text("text")
                yield Spoke("message", self._answer, message_id=self._key(item))
            case "reasoning":
                yield Spoke("thinking", item.text("text"), message_id=self._key(item))
            case "error":
                yield Reported(item.text("message"), "warning")
            case "todo_list" | "":
                pass
            case _:
                call = self._key(item)
                if call not in self._open:
                    yield self._call(item)
                self._open.discard(call)
                outcome = _outcome(item)
                yield ToolFinished(call, _result_text(item), outcome, outcome != "ok")

    def _turn_completed(self, record: Record) -> Iterator[Signal]:
        usage = record.child("usage")
        cached, written = usage.count("cached_input_tokens"), usage.count("cache_write_input_tokens")
        fresh = max(0, usage.count("input_tokens") - cached - written)
        yield Used(Tokens(fresh, usage.count("output_tokens"), written, cached), message_id=self._thread_id or "thread")
        yield Result(success=True, text=self._answer, subtype="turn.completed")

    def _turn_failed(self, record: Record) -> Iterator[Signal]:
        yield Result(success=False, is_error=True, text=record.text("error", "message"), subtype="turn.failed")

    def _error(self, record: Record) -> Iterator[Signal]:
        message = record.text("message")
        yield Retried(message) if message.startswith("Reconnecting") else Reported(message)

    def _key(self, item: Record) -> str:
        return f"{self._prefix}:{item.text('id')}"


def _outcome(item: Record) -> CallOutcome:
    if item.text("status") == "declined":
        return "denied"
    failed = item.text("status") == "failed" or bool(item.get("error")) or item.number("exit_code") not in (None, 0.0)
    return "error" if failed else "ok"


def _result_text(item: Record) -> str:
    if "aggregated_output" in item.raw:
        return item.text("aggregated_output")
    if changes := [f"{change.text('kind')} {change.text('path')}" for change in item.children("changes")]:
        return "\n".join(changes)
    return item.text("error", "message") or joined_text(item.get("result", "content") or item.get("result"))
