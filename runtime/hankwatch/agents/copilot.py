"""GitHub Copilot CLI: ``copilot --output-format json``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import orjson

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import Launch, without_provider
from hankwatch.agents.mcp import NAME, McpServer
from hankwatch.agents.program import Command, TurnRequest, with_system_prompt
from hankwatch.agents.records import Record
from hankwatch.agents.signals import (
    CallOutcome,
    Channel,
    ContextExceeded,
    Reported,
    Result,
    Retried,
    Signal,
    Spoke,
    Started,
    Streamed,
    ToolFinished,
    ToolUsed,
)

_OUTCOMES: Mapping[str, CallOutcome] = {"denied": "denied", "rejected": "denied"}
_SHELL_FOOTER = re.compile(r"\n?<shellId: \d+ completed with exit code -?\d+>\Z")
_CONTEXT_RETRY = "forced_compaction"


class CopilotDialect(TableDialect):
    """Reads ``{type, data, ...}`` lines; ephemeral repetitions other than deltas of text are left alone.

    The session's id comes with the last line only. ``success`` says that a tool ran: a shell's exit code
    stands beside it. The footer that the program adds to a shell's output is taken off, because it counts
    and would make equal answers differ. No tokens are stated, and no money but premium requests.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "assistant.message": self._message,
                "assistant.message_delta": partial(self._delta, "message"),
                "assistant.reasoning_delta": partial(self._delta, "thinking"),
                "tool.execution_start": self._tool_started,
                "tool.execution_complete": self._tool_ended,
                "model.call_failure": self._call_failed,
                "assistant.turn_retry": self._retry,
                "session.error": self._error,
                "result": self._result,
            }
        )
        self._begun = False
        self._answer = ""
        self._failure = ""

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """See ``TableDialect.meaning``; the first line begins a session that has no name yet."""
        if not self._begun:
            self._begun = True
            yield Started("")
        yield from super().meaning(kind, record)

    def _message(self, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        message_id, parent = data.text("messageId"), data.text("parentToolCallId") or None
        yield Spoke("thinking", data.text("reasoningText"), parent, message_id)
        yield Spoke("message", data.text("content"), parent, message_id)
        if parent is None and data.text("content"):
            self._answer = data.text("content")

    def _delta(self, kind: Channel, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        if not data.text("parentToolCallId"):
            yield Streamed(kind, data.text("deltaContent"))

    def _tool_started(self, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        parent = data.text("parentToolCallId") or None
        yield ToolUsed(data.text("toolCallId"), data.text("toolName"), data.child("arguments").raw, parent)

    def _tool_ended(self, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        error, exit_code = data.child("error"), data.number("shellExecution", "exitCode")
        failed = bool(error) or not data.flag("success") or exit_code not in (None, 0.0)
        text = _SHELL_FOOTER.sub("", data.text("result", "content")) or error.text("message")
        outcome: CallOutcome = _OUTCOMES.get(error.text("code"), "error") if failed else "ok"
        yield ToolFinished(data.text("toolCallId"), text, outcome, failed, data.text("parentToolCallId") or None)

    def _call_failed(self, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        self._failure = f"{data.text('errorMessage') or 'request failed'} (status {data.get('statusCode')})"
        return iter(())

    def _retry(self, record: Record) -> Iterator[Signal]:
        reason = record.text("data", "reason")
        if reason == _CONTEXT_RETRY:
            yield ContextExceeded(self._failure)
        yield Retried(f"{reason}: {self._failure}")

    def _error(self, record: Record) -> Iterator[Signal]:
        self._answer = record.text("data", "message")
        yield Reported(self._answer)

    def _result(self, record: Record) -> Iterator[Signal]:
        exit_code = record.get("exitCode")
        yield Started(record.text("sessionId"))
        yield Result(success=exit_code == 0, text=self._answer, subtype=f"exit {exit_code}")


@dataclass(frozen=True, slots=True)
class Copilot(Launch):
    """The real program. It takes no system prompt."""

    executable: Sequence[str] = ("copilot",)
    name: str = "copilot"
    env_names: tuple[str, ...] = ("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN")
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; all tools and paths are allowed unless ``executable`` says something."""
        return self._command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, f"--resume={session_id}")

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """See ``TakesMcp``; beside the servers that are configured."""
        servers = {"mcpServers": {NAME: server.entry(type="local", tools=["*"])}}
        more = ("--additional-mcp-config", orjson.dumps(servers).decode(), "--allow-tool", NAME)
        return replace(command, argv=(*command.argv, *more))

    def dialect(self) -> CopilotDialect:
        """See ``AgentProgram.dialect``."""
        return CopilotDialect()

    def _command(self, request: TurnRequest, *session: str) -> Command:
        allowed = self.unless_said("--allow-all-tools", "--allow-all-paths", instead_of=("--allow-tool", "--deny-tool"))
        model = (
            ("--model", without_provider(request.model, "anthropic", "openai", "google", "github"))
            if request.model
            else ()
        )
        arguments = ("--output-format", "json", "--no-auto-update", *allowed, *model, *session)
        return self.fed(arguments, with_system_prompt(request))
