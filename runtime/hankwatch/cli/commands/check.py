"""``check``: signature and help."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, app, verbosity
from hankwatch.core.errors import UsageError


@app.command()
def check(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH…]", help="Checks (*.check.json, check.json), or folders that hold some."),
    ] = None,
    *,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Hold the checks against this run; nothing is played.")
    ] = None,
    made_from: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Make a check of this finished run, in --out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The new folder for --from.")] = None,
    select: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only checks whose id fits: `narrator and not demo`.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write lists of fires and golden files as they are now.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit file.")] = None,
    github: Annotated[bool, typer.Option("--github", help="Annotations and a job summary for GitHub Actions.")] = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Play recordings under their sentinels and compare fires, reports and journals with what is expected."""
    from hankwatch.cli import check as commands

    options = commands.Options(select, update, junit, github, as_json, config, verbosity(context))
    if made_from is None and out is None:
        raise typer.Exit(commands.check(paths or [Path()], options, run=run))
    if made_from is None:
        raise UsageError("--out goes with --from RUN", hint="it names the folder that a check made of a run is to be")
    if paths or run is not None or select is not None or update or junit is not None or github:
        raise UsageError("--from RUN goes with --out DIR alone", hint="make the check first, then carry it out")
    raise typer.Exit(commands.make(made_from, out, options))
