"""The command that is an MCP server: signature and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, app


@app.command()
def mcp(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="An execution, or a folder of them (else all runs).")
    ] = None,
    *,
    config: Config = None,
) -> None:
    """Be an MCP server on stdin and stdout: tools of watches and runs, for one agent."""
    from hankwatch.cli import mcp as commands

    raise typer.Exit(commands.mcp(folder, config=config))
