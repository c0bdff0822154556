"""The typer application, and the options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from hankwatch import __version__

app = typer.Typer(
    name="hankwatch",
    help="Run coding agents under sentinels: watch their events, ask a model, write reports.",
    rich_markup_mode=None,  # Rich doubles the start-up of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Machine output on stdout; text for people goes to stderr.")]
Run = Annotated[str, typer.Argument(metavar="[RUN]", help="A path, the beginning of an id, or `latest`.")]
RunNamed = Annotated[str, typer.Argument(metavar="RUN", help="A path, the beginning of an id, or `latest`.")]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file instead of the one found.")]


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Errors and results only.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Every event, with its payload.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Options that hold for every command; understood before and behind it."""
    if version:
        typer.echo(__version__)
        raise typer.Exit
    del debug  # looked for where a failure ends up
    context.obj = {"quiet": quiet, "verbose": verbose}
    help_alone(context)
    from hankwatch.cli import logs

    logs.configure(verbosity(context))


def help_alone(context: typer.Context) -> None:
    """Without a command there is only help to give."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def group(name: str, about: str) -> typer.Typer:
    """A new group of commands, ``hankwatch NAME …``."""
    made = typer.Typer(help=about)
    made.callback(invoke_without_command=True)(help_alone)
    app.add_typer(made, name=name)
    return made


def verbosity(context: typer.Context) -> int:
    """-1 quiet, 0 normal, 1 verbose."""
    return int(context.obj["verbose"]) - int(context.obj["quiet"])
