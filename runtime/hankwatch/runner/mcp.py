"""``mcp``: gives the agent of a codon this runtime's MCP server (spec hank 1)."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from hankwatch.agents.mcp import McpServer
from hankwatch.agents.program import AgentProgram, Command, TakesMcp
from hankwatch.core.errors import ExecutionUnusable
from hankwatch.core.files import replace_file
from hankwatch.hank.model import Codon
from hankwatch.processes.ourselves import OURSELVES

_OURS: Final = "HANKWATCH_"


def mcp_lack(codon: Codon, program: AgentProgram) -> str | None:
    """Why what the codon says of it has no effect; None when it has, or when the codon says nothing."""
    if not codon.mcp:
        return None
    if not isinstance(program, TakesMcp):
        return f"mcp has no effect: {program.name} is not known to take an MCP server for one run"
    if find_spec("mcp") is None:
        return "mcp has no effect: the package of the MCP server is not installed"
    return None


def with_mcp(program: AgentProgram, command: Command, env: Mapping[str, str], file: Path) -> Command:
    """How a turn is started whose whole environment is ``env``, with our server for it; writes ``file``.

    Raises:
        UsageError: what the program is configured with leaves no place for it.
        ExecutionUnusable: the file cannot be written.
    """
    of_program, command = command.env, replace(command, env=env)
    if not isinstance(program, TakesMcp) or find_spec("mcp") is None:
        return command
    ours = {name: value for name, value in env.items() if name.startswith(_OURS) and name not in of_program}
    server = McpServer((*OURSELVES, "mcp"), ours, file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, server.as_json())
    except OSError as error:
        raise ExecutionUnusable(file, error) from error
    return program.with_mcp(command, server)
