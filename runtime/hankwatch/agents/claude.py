"""Claude Code: ``claude -p --output-format stream-json`` (also read for look-alikes printing that dialect)."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.errors import is_context_exceeded
from hankwatch.agents.mcp import NAME, START_S, McpServer
from hankwatch.agents.program import Command, TurnRequest, as_argument
from hankwatch.agents.records import Record, joined_text, model_uses
from hankwatch.agents.signals import (
    CallOutcome,
    Channel,
    ContextExceeded,
    ModelUse,
    Reported,
    Result,
    Retried,
    Signal,
    Spoke,
    Started,
    Streamed,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)
from hankwatch.core.text import clean_text

_NOT_EXECUTED: Mapping[str, CallOutcome] = {"permission-rule": "denied", "user-rejected": "cancelled"}
_DENIED = ("requested permissions to", "Permission to use", "hook error:")
_CANCELLED = ("[Request interrupted by user", "The user doesn't want to proceed", "[Operation Cancelled]")
_DELTAS: tuple[tuple[str, Channel], ...] = (("text", "message"), ("thinking", "thinking"))
_SERVES = ("connected", "pending")
_SYNTHETIC = "<synthetic>"
"""The model of a message that the program wrote itself, such as an API error."""
_BYPASS = ("--permission-mode", "bypassPermissions")
_AS_ROOT = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Write,Edit,Task,Agent,WebFetch,WebSearch")
"""For root, to whom the program refuses the bypass."""
_PERMISSION_FLAGS = ("--permission-mode", "--allowedTools", "--allowed-tools", "--dangerously-skip-permissions")


class ClaudeDialect(TableDialect):
    """Reads the stream-json lines; one block per line, the lines of a message share its id.

    ``message.usage`` is what was known when the message began (one output token), so each result line
    closes the account: tokens and money since the line before it, sub-agents included, taken from
    ``model_usage_since_last_result``. Older versions state ``modelUsage`` and ``total_cost_usd`` only, which
    run over the whole session; look-alikes state plain ``usage``.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "system": self._system,
                "stream_event": self._stream_event,
                "assistant": self._assistant,
                "user": self._user,
                "result": self._result,
            }
        )
        self._denied: set[str] = set()

    @staticmethod
    def tokens(usage: Record) -> Tokens:
        """A ``usage`` object, whose kinds are disjoint."""
        return Tokens(
            usage.count("input_tokens"),
            usage.count("output_tokens"),
            usage.count("cache_creation_input_tokens"),
            usage.count("cache_read_input_tokens"),
        )

    def _system(self, record: Record) -> Iterator[Signal]:
        match record.text("subtype"):
            case "init":
                yield Started(record.text("session_id"), record.text("model") or None)
                yield from _without_server(record)
            case "api_retry":
                yield Retried(
                    f"attempt {record.count('attempt')} of {record.count('max_retries')}: "
                    f"{record.text('error') or 'request failed'} (status {record.get('error_status')}), "
                    f"next in {record.count('retry_delay_ms')} ms"
                )
            case "permission_denied":
                self._denied.add(record.text("tool_use_id"))
            case "compact_boundary" if record.text("compact_metadata", "trigger") != "manual":
                yield ContextExceeded("the conversation was compacted")
            case _:
                pass

    def _stream_event(self, record: Record) -> Iterator[Signal]:
        """Only with ``--include-partial-messages``."""
        delta = record.child("event").child("delta")
        if not record.text("parent_tool_use_id"):
            for key, kind in _DELTAS:
                if piece := delta.text(key):
                    yield Streamed(kind, piece)

    def _assistant(self, record: Record) -> Iterator[Signal]:
        message = record.child("message")
        message_id = message.text("id")
        model = message.text("model") if message.text("model") not in ("", _SYNTHETIC) else None
        parent = record.text("parent_tool_use_id") or None
        if usage := message.child("usage"):
            yield Used(self.tokens(usage), message_id, model)
        content = message.get("content")
        if message.text("model") == _SYNTHETIC and is_context_exceeded(text := joined_text(content)):
            yield ContextExceeded(text)
        if isinstance(content, str):
            yield Spoke("message", content, parent, message_id)
        for block in message.children("content"):
            yield from _block(block, message_id, parent)

    def _user(self, record: Record) -> Iterator[Signal]:
        parent = record.text("parent_tool_use_id") or None
        kinds = {meta.text("id"): meta.text("non_execution_kind") for meta in record.children("tool_result_meta")}
        for block in record.child("message").children("content"):
            if block.text("type") == "tool_result":
                call = block.text("tool_use_id")
                text, is_error = joined_text(block.get("content")), block.flag("is_error")
                yield ToolFinished(
                    call, text, self._outcome(call, text, is_error, kinds.get(call, "")), is_error, parent
                )

    def _outcome(self, call: str, text: str, is_error: bool, kind: str) -> CallOutcome:
        if call in self._denied:
            return "denied"
        if kind in _NOT_EXECUTED:
            return _NOT_EXECUTED[kind]
        if not is_error:
            return "ok"
        if text.startswith(_CANCELLED):
            return "cancelled"
        return "denied" if any(words in text[:200] for words in _DENIED) else "error"

    def _result(self, record: Record) -> Iterator[Signal]:
        yield self.account(record)
        errors = record.get("errors")
        yield Result(
            success=record.text("subtype") == "success",
            is_error=record.flag("is_error"),
            text=record.text("result") or (joined_text(errors) if isinstance(errors, list) else ""),
            subtype=record.text("subtype"),
            terminal_reason=record.text("terminal_reason"),
        )

    def account(self, record: Record) -> Used:
        """What a result line states."""
        stated = model_uses(record.child("modelUsage"))
        model = next(iter(stated)) if len(stated) == 1 else None
        total = Used(
            self.tokens(record.child("usage")), record.text("uuid"), model, record.number("total_cost_usd"), True
        )
        if isinstance(record.get("model_usage_since_last_result"), dict):
            since = model_uses(record.child("model_usage_since_last_result"))
            cost_usd = sum(use.cost_usd or 0.0 for use in since.values())
            return replace(total, tokens=_sum(since), cost_usd=cost_usd, by_model=since)
        if stated:
            return replace(total, tokens=_sum(stated), by_model=stated, session=record.text("session_id") or "session")
        return total


def _without_server(record: Record) -> Iterator[Signal]:
    """The agent works without our MCP server: nothing else tells."""
    for server in record.children("mcp_servers"):
        if server.text("name") == NAME and (status := server.text("status")) not in _SERVES:
            yield Reported(f"the MCP server {NAME} is not there: {status}", "warning")


def _block(block: Record, message_id: str, parent: str | None) -> Iterator[Signal]:
    match block.text("type"):
        case "text":
            yield Spoke("message", block.text("text"), parent, message_id)
        case "thinking":
            yield Spoke("thinking", block.text("thinking"), parent, message_id)
        case "tool_use":
            yield ToolUsed(block.text("id"), block.text("name"), block.child("input").raw, parent)
        case _:
            pass


def _sum(models: Mapping[str, ModelUse]) -> Tokens:
    return sum((use.tokens for use in models.values()), Tokens())


@dataclass(frozen=True, slots=True)
class Claude:
    """The real program: steerable over stdin, interruptible by a control request, resumable."""

    executable: Sequence[str] = ("claude",)
    """How to start it; fixed arguments may follow the path."""
    env: Mapping[str, str] = field(default_factory=dict)
    name: str = "claude"
    env_names: tuple[str, ...] = ("ANTHROPIC_*", "CLAUDE_*")
    """See ``AgentProgram.env_names``."""
    compaction_off: str | None = "DISABLE_AUTO_COMPACT"
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``. Permissions are bypassed unless ``executable`` says something itself."""
        return self._command(request, ())

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, ("--resume", session_id))

    def steer(self, text: str) -> bytes:
        """See ``Steers``."""
        content = [{"type": "text", "text": clean_text(text)}]
        return _line({"type": "user", "message": {"role": "user", "content": content}})

    def interrupt(self, request_id: str) -> bytes:
        """See ``Interrupts``."""
        return _line({"type": "control_request", "request_id": request_id, "request": {"subtype": "interrupt"}})

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """See ``TakesMcp``; beside the servers that are configured, and allowed whatever else is.

        A turn begins once the server answers, and its tools are there from the beginning.
        """
        servers = {"mcpServers": {NAME: server.entry(alwaysLoad=True)}}
        more = ("--mcp-config", orjson.dumps(servers).decode(), "--allowedTools", f"mcp__{NAME}")
        patience = dict.fromkeys(("MCP_TIMEOUT", "MCP_CONNECT_TIMEOUT_MS"), str(START_S * 1_000))
        env = {**patience, "MCP_CONNECTION_NONBLOCKING": "false", **command.env}
        return replace(command, argv=(*command.argv, *more), env=env)

    def dialect(self) -> ClaudeDialect:
        """See ``AgentProgram.dialect``."""
        return ClaudeDialect()

    def _command(self, request: TurnRequest, extra: Sequence[str]) -> Command:
        argv = [*self.executable, "-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
        if not any(flag in self.executable for flag in _PERMISSION_FLAGS):
            argv += _AS_ROOT if os.geteuid() == 0 else _BYPASS
        if request.model:
            argv += ["--model", request.model.removeprefix("anthropic/")]
        if request.system_prompt:
            argv += ["--append-system-prompt", as_argument(request.system_prompt)]
        return Command((*argv, *extra), self.env, (self.steer(request.prompt),), stdin_open=True)


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
