"""opencode: ``opencode run --format json``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import PROVIDERS, Launch
from hankwatch.agents.mcp import NAME, START_S, McpServer
from hankwatch.agents.program import Command, TurnRequest, with_system_prompt
from hankwatch.agents.records import Record
from hankwatch.agents.signals import (
    CallOutcome,
    Channel,
    ContextExceeded,
    Reported,
    Result,
    Signal,
    Spoke,
    Started,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)
from hankwatch.core.errors import UsageError

_DENIED = ("rejected permission", "rule which prevents", "permission denied by")
_CANCELLED = ("aborted", "cancelled")
_CONFIG = "OPENCODE_CONFIG_CONTENT"


class OpencodeDialect(TableDialect):
    """Reads parts; a tool call appears only once it has ended, so both its signals come at once.

    There is no start line (the session id is on every line) and no result line either: a step that
    finished for another reason than tool calls ends the turn. Tokens and cost are per step and add up;
    reasoning tokens stand beside the output tokens and are counted with them.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "text": lambda record: self._speech("message", record),
                "reasoning": lambda record: self._speech("thinking", record),
                "tool_use": self._tool_use,
                "step_finish": self._step_finish,
                "error": self._error,
            }
        )
        self._session_id = ""
        self._answer = ""

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """See ``TableDialect.meaning``; the first line that names the session starts it."""
        session_id = record.text("sessionID")
        if session_id and not self._session_id:
            self._session_id = session_id
            yield Started(session_id)
        yield from super().meaning(kind, record)

    def _speech(self, kind: Channel, record: Record) -> Iterator[Signal]:
        text = record.text("part", "text")
        if record.flag("part", "synthetic"):
            # Written by the program: it shortens the conversation and tells the model to go on.
            if record.flag("part", "metadata", "compaction_continue"):
                yield ContextExceeded(text)
            return
        if kind == "message":
            self._answer = text
        yield Spoke(kind, text, message_id=record.text("part", "id"))

    def _tool_use(self, record: Record) -> Iterator[Signal]:
        part = record.child("part")
        call, state = part.text("callID"), part.child("state")
        outcome = _outcome(part.text("tool"), state)
        yield ToolUsed(call, part.text("tool"), state.child("input").raw)
        yield ToolFinished(call, state.text("output") or state.text("error"), outcome, outcome != "ok")

    def _step_finish(self, record: Record) -> Iterator[Signal]:
        part = record.child("part")
        tokens = part.child("tokens")
        yield Used(
            Tokens(
                tokens.count("input"),
                tokens.count("output") + tokens.count("reasoning"),
                tokens.count("cache", "write"),
                tokens.count("cache", "read"),
            ),
            message_id=part.text("id"),
            cost_usd=part.number("cost"),
        )
        reason = part.text("reason")
        if reason != "tool-calls":
            yield Result(success=True, text=self._answer, subtype=f"step {reason}", terminal_reason=reason)

    def _error(self, record: Record) -> Iterator[Signal]:
        error = record.child("error")
        status = error.get("data", "statusCode")
        message = error.text("data", "message") or error.text("message") or error.text("name")
        yield Reported(message if status is None else f"{message} (status {status})")


def _outcome(tool: str, state: Record) -> CallOutcome:
    if state.text("status") == "error":
        text = state.text("error")
        if any(words in text for words in _DENIED):
            return "denied"
        return "cancelled" if any(words in text for words in _CANCELLED) else "error"
    # "invalid" stands for an unknown tool and is completed; a shell's exit code stands in its metadata.
    failed = tool == "invalid" or state.number("metadata", "exit") not in (None, 0.0)
    return "error" if failed else "ok"


@dataclass(frozen=True, slots=True)
class Opencode(Launch):
    """The real program. It takes no system prompt, and models by ``provider/name`` only."""

    executable: Sequence[str] = ("opencode",)
    name: str = "opencode"
    env_names: tuple[str, ...] = ("OPENCODE_*", *PROVIDERS)
    compaction_off: str | None = "OPENCODE_DISABLE_AUTOCOMPACT"
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; what its rules do not forbid is approved."""
        return self._run(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._run(request, "--session", session_id)

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """See ``TakesMcp``; beside what the variable for inline configuration says already."""
        entry = {"type": "local", "command": list(server.argv), "environment": dict(server.env), "enabled": True}
        config = _config(command.env.get(_CONFIG, ""))
        servers = {**_config_of(config, "mcp"), NAME: {**entry, "timeout": START_S * 1_000}}
        written = orjson.dumps({**config, "mcp": servers}).decode()
        return replace(command, env={**command.env, _CONFIG: written})

    def dialect(self) -> OpencodeDialect:
        """See ``AgentProgram.dialect``."""
        return OpencodeDialect()

    def _run(self, request: TurnRequest, *session: str) -> Command:
        if request.model and "/" not in request.model:
            raise UsageError(
                f"opencode knows no model {request.model!r}", hint=f"name its provider: PROVIDER/{request.model}"
            )
        model = ("--model", request.model) if request.model else ()
        return self.fed(
            ("run", "--format", "json", "--thinking", "--auto", *model, *session), with_system_prompt(request)
        )


def _config(text: str) -> dict[str, Any]:
    """Inline configuration as its user has set it."""
    try:
        config = orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{_CONFIG} is no JSON, so no MCP server can be added to it: {error}") from error
    if not isinstance(config, dict):
        raise UsageError(f"{_CONFIG} is no JSON object, so no MCP server can be added to it")
    return config


def _config_of(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = config.get(key)
    return found if isinstance(found, dict) else {}
