"""``validate``: signature and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, app, verbosity


@app.command()
def validate(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(help="A hank.json, its folder, one sentinel config, a check, or a settings file.")
    ] = Path(),
    *,
    config: Config = None,
    as_json: Json = False,
    print_schema: Annotated[
        str | None,
        typer.Option(
            help="Print a JSON Schema (hank, sentinel, watchdog, check, watch, settings, hankweave) and stop."
        ),
    ] = None,
) -> None:
    """Report every fault of a hank or config file, with file, line and what would be right."""
    from hankwatch.cli import validate as commands

    raise typer.Exit(
        commands.validate(path, config=config, as_json=as_json, print_schema=print_schema, verbose=verbosity(context))
    )
