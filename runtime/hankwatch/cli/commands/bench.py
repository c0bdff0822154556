"""Commands of the test bench: signatures and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, app


@app.command(name="try")
def try_(
    sentinel: Annotated[Path, typer.Argument(metavar="CONFIG", help="A sentinel or watchdog config file.")],
    source: Annotated[
        str, typer.Argument(metavar="[RUN|FILE]", help="A run, a journal or a recorded stream.")
    ] = "latest",
    *,
    render: Annotated[bool, typer.Option("--render", help="Show the prompts.")] = False,
    where: Annotated[bool, typer.Option("--where", help="Show near misses: which condition failed, and why.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again on every save, with what it changed.")] = False,
    timeline: Annotated[
        bool | None, typer.Option("--timeline/--no-timeline", help="Draw what happened when (else on a terminal).")
    ] = None,
    codon: Annotated[str | None, typer.Option(help="Only this codon's events.")] = None,
    agent: Annotated[str | None, typer.Option(help="Which program wrote the stream (else detected).")] = None,
    no_drain: Annotated[bool, typer.Option("--no-drain", help="Leave buffers unflushed at the end.")] = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show when a sentinel would have fired, or a loop watchdog acted, on recorded events; asks no model."""
    from hankwatch.cli import bench as commands

    look = commands.Look(render=render, where=where, timeline=timeline, drain=not no_drain, as_json=as_json)
    raise typer.Exit(commands.attempt(sentinel, source, look, codon=codon, agent=agent, config=config, watch=watch))
