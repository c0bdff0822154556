"""Commands that read journals or make one: signatures and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, Run, app, group, verbosity

journal_app = group("journal", "Look into a journal, or make one from a recorded stream.")


@app.command()
def tail(
    context: typer.Context,
    target: Run = "latest",
    *,
    types: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be given again.")] = None,
    since: Annotated[int, typer.Option(min=0, help="Begin behind this cursor.")] = 0,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Follow a journal, from its beginning or from a cursor, until its run ends."""
    from hankwatch.cli import journal as commands

    raise typer.Exit(
        commands.tail(target, types=types, since=since, config=config, as_json=as_json, verbose=verbosity(context))
    )


@journal_app.command(name="stats")
def journal_stats(target: Run = "latest", *, config: Config = None, as_json: Json = False) -> None:
    """Integrity of a journal, and counts and sizes per event type."""
    from hankwatch.cli import journal as commands

    raise typer.Exit(commands.stats(target, config=config, as_json=as_json))


@journal_app.command(name="import")
def journal_import(
    source: Annotated[Path, typer.Argument(help="A recorded agent stream, or a foreign journal; may be gzipped.")],
    *,
    out: Annotated[Path, typer.Option(help="The journal to write; must not exist.")],
    agent: Annotated[str | None, typer.Option(help="Which program wrote the stream (else detected).")] = None,
    codon: Annotated[
        str | None, typer.Option(help="A stream: codon id of its events. A journal: only this codon.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Turn a recorded agent stream or a foreign journal into a journal of ours."""
    from hankwatch.cli import journal as commands

    raise typer.Exit(commands.import_(source, out=out, agent=agent, codon=codon, config=config, as_json=as_json))
