"""Qwen Code: ``qwen --output-format stream-json``, Claude's lines with a mind of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hankwatch.agents.claude import ClaudeDialect
from hankwatch.agents.launch import Launch, without_provider
from hankwatch.agents.mcp import McpServer
from hankwatch.agents.program import Command, TurnRequest, as_argument
from hankwatch.agents.records import Record, remainder
from hankwatch.agents.signals import Tokens, Used


class QwenDialect(ClaudeDialect):
    """Reads Claude's lines where they mean something else.

    Every line is a message of its own; ``input_tokens`` contains what the cache gave. The result's usage runs
    over the session, sub-agents included. A command that exits non-zero is no error here (the stream has no
    code), and a fatal API error is a success whose text begins with ``[API Error``: the table of outcomes
    doubts it.
    """

    def account(self, record: Record) -> Used:
        """See ``ClaudeDialect.account``."""
        tokens = self.tokens(record.child("usage"))
        return Used(tokens, record.text("uuid"), total=True, session=record.text("session_id") or "session")

    @staticmethod
    def tokens(usage: Record) -> Tokens:
        """See ``ClaudeDialect.tokens``; the cached part is taken out of the input."""
        cached = usage.count("cache_read_input_tokens")
        return Tokens(remainder(usage.count("input_tokens"), cached), usage.count("output_tokens"), 0, cached)


@dataclass(frozen=True, slots=True)
class Qwen(Launch):
    """The real program."""

    executable: Sequence[str] = ("qwen",)
    name: str = "qwen"
    env_names: tuple[str, ...] = ("QWEN_*", "OPENAI_*", "DASHSCOPE_*", "BAILIAN_*")
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; all tools are approved unless ``executable`` says something itself."""
        return self._command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, "--resume", session_id)

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """See ``TakesMcp``; as its lowest layer of settings, in place of this machine's."""
        return replace(command, env={**command.env, "QWEN_CODE_SYSTEM_DEFAULTS_PATH": str(server.file)})

    def dialect(self) -> QwenDialect:
        """See ``AgentProgram.dialect``."""
        return QwenDialect()

    def _command(self, request: TurnRequest, *session: str) -> Command:
        arguments = [
            *self.unless_said("--auth-type", "openai"),
            "--output-format",
            "stream-json",
            *self.unless_said("--approval-mode", "yolo", instead_of=("--yolo", "-y")),
        ]
        if request.model:
            arguments += ["--model", without_provider(request.model, "openai")]
        if request.system_prompt:
            arguments += ["--append-system-prompt", as_argument(request.system_prompt)]
        return self.fed((*arguments, *session), request.prompt)
