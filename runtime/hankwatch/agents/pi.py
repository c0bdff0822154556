"""Pi: ``pi --mode json``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import PROVIDERS, Launch, without_provider
from hankwatch.agents.program import Command, TurnRequest, as_argument
from hankwatch.agents.records import Record, joined_text
from hankwatch.agents.signals import (
    Channel,
    ContextExceeded,
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

_NAMES: Mapping[str, str] = {
    "read": "Read",
    "bash": "Bash",
    "edit": "Edit",
    "write": "Write",
    "grep": "Grep",
    "find": "Glob",
    "ls": "LS",
}
_DELTAS: Mapping[str, Channel] = {"text_delta": "message", "thinking_delta": "thinking"}
_FAILED_STOPS = frozenset({"error", "aborted"})


class PiDialect(TableDialect):
    """Reads message ends, tool executions, and the new text of updates, which repeat the whole message besides.

    Tool names and input keys take the form hank authors know (reference 7.3). The program exits 0 on a
    fatal API error: only the last message's stop reason tells.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "session": self._session,
                "message_update": self._message_update,
                "message_end": self._message_end,
                "tool_execution_start": self._tool_started,
                "tool_execution_end": self._tool_ended,
                "auto_retry_start": self._retry,
                "compaction_start": self._compaction,
                "agent_end": self._agent_end,
            }
        )
        self._stop = ""
        self._text = ""

    def _session(self, record: Record) -> Iterator[Signal]:
        yield Started(record.text("id"))

    def _message_update(self, record: Record) -> Iterator[Signal]:
        update = record.child("assistantMessageEvent")
        if (kind := _DELTAS.get(update.text("type"))) is not None:
            yield Streamed(kind, update.text("delta"))

    def _message_end(self, record: Record) -> Iterator[Signal]:
        message = record.child("message")
        if message.text("role") != "assistant":
            return
        message_id = message.text("responseId")
        texts = []
        for block in message.children("content"):
            if block.text("type") == "thinking":
                yield Spoke("thinking", block.text("thinking"), message_id=message_id)
            elif block.text("type") == "text":
                texts.append(block.text("text"))
                yield Spoke("message", block.text("text"), message_id=message_id)
        self._stop, self._text = message.text("stopReason"), message.text("errorMessage") or "\n".join(texts)
        usage = message.child("usage")
        yield Used(
            Tokens(usage.count("input"), usage.count("output"), usage.count("cacheWrite"), usage.count("cacheRead")),
            message_id=message_id,
            model=message.text("model") or None,
            cost_usd=usage.number("cost", "total"),
        )

    def _tool_started(self, record: Record) -> Iterator[Signal]:
        name = record.text("toolName")
        yield ToolUsed(record.text("toolCallId"), _NAMES.get(name, name), _known_keys(record.child("args").raw))

    def _tool_ended(self, record: Record) -> Iterator[Signal]:
        failed = record.flag("isError")
        text = joined_text(record.get("result", "content"))
        yield ToolFinished(record.text("toolCallId"), text, "error" if failed else "ok", failed)

    def _retry(self, record: Record) -> Iterator[Signal]:
        yield Retried(record.text("errorMessage") or "request failed")

    def _compaction(self, record: Record) -> Iterator[Signal]:
        if record.text("reason") != "manual":
            yield ContextExceeded(f"compaction ({record.text('reason')})")

    def _agent_end(self, _: Record) -> Iterator[Signal]:
        failed = self._stop in _FAILED_STOPS
        yield Result(not failed, failed, self._text, subtype=self._stop, terminal_reason=self._stop)


def _known_keys(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "file_path" if key in ("path", "filePath") else re.sub(r"(?<=[a-z0-9])[A-Z]", _lowered, key): value
        for key, value in arguments.items()
    }


def _lowered(capital: re.Match[str]) -> str:
    return "_" + capital.group().lower()


@dataclass(frozen=True, slots=True)
class Pi(Launch):
    """The real program; it has no permissions to bypass."""

    executable: Sequence[str] = ("pi",)
    name: str = "pi"
    env_names: tuple[str, ...] = ("PI_*", "KIMI_*", "MINIMAX_*", "OPENCODE_API_KEY", "AI_GATEWAY_API_KEY", *PROVIDERS)
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; the hank's ``pi/`` is taken off the model."""
        return self._command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, "--session", session_id)

    def dialect(self) -> PiDialect:
        """See ``AgentProgram.dialect``."""
        return PiDialect()

    def _command(self, request: TurnRequest, *session: str) -> Command:
        arguments = ["--mode", "json", "--print"]
        if request.model:
            arguments += ["--model", without_provider(request.model, "pi")]
        if request.system_prompt:
            arguments += ["--append-system-prompt", as_argument(request.system_prompt)]
        return self.fed((*arguments, *session), request.prompt)
