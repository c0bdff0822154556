"""The agent ``exec:COMMAND``: any command that prints our envelope or Claude's dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hankwatch.agents.detect import ENVELOPE, DetectingDialect
from hankwatch.agents.mcp import McpServer
from hankwatch.agents.program import Command, TurnRequest, as_argument


@dataclass(frozen=True, slots=True)
class ExecAgent:
    """Runs a command without a shell; the prompt comes on its stdin, which is then closed.

    The command is always as written. What a turn is about stands in variables: ``HANKWATCH_TURN`` (1, 2, …), from
    the second turn of a session on ``HANKWATCH_SESSION_ID``, ``HANKWATCH_MODEL`` and ``HANKWATCH_SYSTEM_PROMPT``.
    A command that heeds no session begins anew each turn. With ``mcp`` the codon gives it ``HANKWATCH_MCP_CONFIG``, a
    file that says how the MCP server is started.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    name: str = "exec"
    env_names: tuple[str, ...] = ()
    """See ``AgentProgram.env_names``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``."""
        return self._command(request, {})

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, {"HANKWATCH_SESSION_ID": as_argument(session_id)})

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """See ``TakesMcp``."""
        return replace(command, env={**command.env, "HANKWATCH_MCP_CONFIG": str(server.file)})

    def dialect(self) -> DetectingDialect:
        """See ``AgentProgram.dialect``; which of them it prints, its first such line says."""
        return DetectingDialect((ENVELOPE, "claude", "qwen"))

    def _command(self, request: TurnRequest, session: Mapping[str, str]) -> Command:
        env = {**self.env, **session, "HANKWATCH_TURN": str(request.turn)}
        if request.model:
            env["HANKWATCH_MODEL"] = request.model
        if request.system_prompt:
            env["HANKWATCH_SYSTEM_PROMPT"] = as_argument(request.system_prompt)
        prompt = request.prompt.encode("utf-8", "replace")
        return Command(self.argv, env, (prompt if prompt.endswith(b"\n") else prompt + b"\n",))
