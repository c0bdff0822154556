"""Our MCP server as agent programs are told of it (spec hank 1, ``mcp``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

NAME: Final = "hankwatch"
"""Of the server; programs put it into the names of its tools."""
START_S: Final = 60
"""What a program is asked to wait for it on a busy machine, where it can be asked."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """How a program starts the server. Nothing of it is a secret: some programs take it in their command line."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Most programs give their servers little of their own environment."""
    file: Path
    """Holds ``as_json`` while the turn runs, for programs that read a file."""

    def as_json(self) -> bytes:
        """The form that most programs read: ``{"mcpServers": {NAME: {command, args, env}}}``."""
        return orjson.dumps({"mcpServers": {NAME: self.entry()}})

    def entry(self, **more: Any) -> dict[str, Any]:
        """The server in that form, with what else a program wants to know."""
        return {"command": self.argv[0], "args": list(self.argv[1:]), "env": dict(self.env), **more}
