"""The agent ``exec:COMMAND``: any command that prints our envelope or Claude's dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hankwatch.agents.detect import ENVELOPE, DetectingDialect
from hankwatch.agents.program import Command, TurnRequest, as_argument


@dataclass(frozen=True, slots=True)
class ExecAgent:
    """Runs a command without a shell; the prompt comes on its stdin, which is then closed."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    name: str = "exec"
    env_names: tuple[str, ...] = ()
    """See ``AgentProgram.env_names``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; model and system prompt come as ``HANKWATCH_MODEL`` and ``…_SYSTEM_PROMPT``."""
        env = dict(self.env)
        if request.model:
            env["HANKWATCH_MODEL"] = request.model
        if request.system_prompt:
            env["HANKWATCH_SYSTEM_PROMPT"] = as_argument(request.system_prompt)
        prompt = request.prompt.encode("utf-8", "replace")
        return Command(self.argv, env, (prompt if prompt.endswith(b"\n") else prompt + b"\n",))

    def dialect(self) -> DetectingDialect:
        """See ``AgentProgram.dialect``; which of them it prints, its first such line says."""
        return DetectingDialect((ENVELOPE, "claude", "qwen"))
