"""Commands of the test bench: signatures and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, app


@app.command(name="try")
def try_(
    sentinel: Annotated[Path, typer.Argument(metavar="CONFIG", help="A sentinel config file.")],
    source: Annotated[
        str, typer.Argument(metavar="[RUN|FILE]", help="A run, a journal or a recorded stream.")
    ] = "latest",
    *,
    render: Annotated[bool, typer.Option("--render", help="Show the prompts.")] = False,
    codon: Annotated[str | None, typer.Option(help="Only this codon's events.")] = None,
    agent: Annotated[str | None, typer.Option(help="Which program wrote the stream (else detected).")] = None,
    no_drain: Annotated[bool, typer.Option("--no-drain", help="Leave buffers unflushed at the end.")] = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show when a sentinel would have fired on recorded events; asks no model."""
    from hankwatch.cli import bench as commands

    raise typer.Exit(
        commands.attempt(
            sentinel,
            source,
            render=render,
            codon=codon,
            agent=agent,
            drain=not no_drain,
            config=config,
            as_json=as_json,
        )
    )
