"""The command for reviewers: signature and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, Run, app


@app.command()
def report(
    target: Run = "latest",
    *,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file to write; else the run's own folder, or stdout.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown for a pull request, on stdout.")] = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make one HTML file of a run for its reviewers: outcome, timeline, what each sentinel saw and why."""
    from hankwatch.cli import report as commands

    raise typer.Exit(commands.report(target, out=out, markdown=markdown, config=config, as_json=as_json))
