"""The command that serves runs and watches over HTTP: signature and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, app, verbosity


@app.command()
def serve(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="An execution, or a folder of them (else all runs).")
    ] = None,
    *,
    bind: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for any that is free (0).")] = None,
    policy: Annotated[Path | None, typer.Option(help="Who may do what; needed beyond loopback.")] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open the address in a browser.")] = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Serve runs and watches over HTTP, and check the watches, until it is interrupted."""
    from hankwatch.cli import serve as commands

    given = commands.Given(bind, port, policy)
    code = commands.serve(folder, given, config=config, as_json=as_json, verbose=verbosity(context), opens=opens)
    raise typer.Exit(code)
