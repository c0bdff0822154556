"""``replay``: signature and help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from hankwatch.cli.commands.application import Config, Json, app, verbosity


@app.command()
def replay(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A run, a journal or a recorded stream.")],
    *,
    sentinels: Annotated[
        Literal["skip", "cassette", "live"],
        typer.Option(help="Leave sentinels out, answer them from a call log, or ask the models."),
    ] = "skip",
    calls: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The call log (else the execution's, or calls.jsonl beside).")
    ] = None,
    hank: Annotated[Path | None, typer.Option(help="Whose sentinels (else the execution's hank).")] = None,
    codon: Annotated[
        str | None, typer.Option(help="Only this codon's events; of an agent's stream the codon it stands for.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Which program wrote the stream (else detected).")] = None,
    speed: Annotated[Literal["max", "real"], typer.Option(help="As fast as possible, or as it was.")] = "max",
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same replay again gives the same bytes.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The directory to make.")] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Play a recording once more in virtual time, into a directory like a run's."""
    from hankwatch.cli import replay as commands
    from hankwatch.replaying import ReplayRequest

    request = ReplayRequest(source, sentinels, calls, hank, codon, agent, speed, deterministic, out, config)
    raise typer.Exit(commands.replay(request, as_json=as_json, verbose=verbosity(context)))
