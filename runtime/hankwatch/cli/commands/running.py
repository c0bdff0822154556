"""Commands that run hanks and steer runs: signatures and help."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from hankwatch.cli.commands.application import Config, Json, app, verbosity


@app.command()
def demo(
    context: typer.Context, *, execution: Annotated[Path | None, typer.Option(help="Where to run it.")] = None
) -> None:
    """Run the shipped hank offline: a recorded agent, a built-in model, real sentinels, real reports."""
    from hankwatch.cli import run as commands

    raise typer.Exit(commands.demo(execution, verbose=verbosity(context)))


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="A new folder, or one that is there.")] = Path(),
    *,
    as_json: Json = False,
) -> None:
    """Make a hank to begin with: a prompt, a sentinel, a recording that both work on, a check."""
    from hankwatch.cli import init as commands

    raise typer.Exit(commands.init(folder, as_json=as_json))


class _Run(TyperCommand):
    """Understands ``--serve`` without a port, which typer's options do not."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_port(args))


def _with_port(arguments: list[str]) -> list[str]:
    """``--serve`` is followed by a port, or by whatever else; an end of options ends that."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    written = list[str]()
    for number, argument in enumerate(arguments):
        is_bare = argument == "--serve" and number < end and not "".join(arguments[number + 1 : number + 2]).isdecimal()
        written.append(f"--serve={AS_SET}" if is_bare else argument)
    return written


AS_SET: Final = -1
"""The port that settings say."""


@app.command(cls=_Run)
def run(
    context: typer.Context,
    hank: Annotated[Path, typer.Argument(help="A hank.json, or the folder that holds one.")] = Path(),
    data: Annotated[Path | None, typer.Argument(help="Data the agent may read.")] = None,
    *,
    execution: Annotated[Path | None, typer.Option("--execution", "-e", help="Run in this directory.")] = None,
    start_new: Annotated[bool, typer.Option("--start-new", "-n", help="A new run in a used directory.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last run there, or of this hank.")] = False,
    headless: Annotated[bool, typer.Option("--headless", help="Log lines instead of the live view; no keys.")] = False,
    no_autostart: Annotated[
        bool, typer.Option("--no-autostart", help="Each codon, and one that failed, waits for `next`.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Copy output files of codons here.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model of all codons.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="End the run at this cost of agents, in US dollars.")] = None,
    max_time: Annotated[float | None, typer.Option(help="End the run after this time of agents, in seconds.")] = None,
    wake: Annotated[
        bool, typer.Option("--wake", help="Only the turns that watches of this --execution ask for.")
    ] = False,
    serve: Annotated[
        int | None,
        typer.Option(metavar="[PORT]", help="Serve the run over HTTP meanwhile; 0 for any free port."),
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Run a hank: its codons in order, each watched by its sentinels."""
    from hankwatch.cli import run as commands
    from hankwatch.options import RunOptions

    options = RunOptions(
        hank,
        data,
        execution,
        start_new,
        model,
        config,
        max_cost_usd=max_cost,
        max_time_s=max_time,
        resume=resume,
        output=output,
        autostart=False if no_autostart else None,
        wake=wake,
    )
    look = commands.Look(headless=headless, as_json=as_json, verbose=verbosity(context))
    if serve is None:
        raise typer.Exit(commands.run(options, look))
    from hankwatch.cli import serve as server

    server.require_packages()
    from hankwatch.cli.run_server import run_server

    raise typer.Exit(commands.run(options, look, run_server(None if serve == AS_SET else serve, config)))


@app.command()
def runs(*, config: Config = None, as_json: Json = False) -> None:
    """List runs, newest first: outcome, cost, and what their sentinels did."""
    from hankwatch.cli import runs as commands

    raise typer.Exit(commands.runs(config=config, as_json=as_json))


@app.command()
def control(
    target: Annotated[str, typer.Argument(metavar="RUN", help="A path, the beginning of an id, or `latest`.")],
    order: Annotated[
        str, typer.Argument(metavar="ORDER", help="next, skip, stop, force-stop, rollback or checkpoints.")
    ],
    aim: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="What a rollback goes back to: a checkpoint's SHA, CODON, CODON:start|end or last-success.",
        ),
    ] = None,
    *,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Steer a live run: the next codon, skip this one, stop the run, end the codon by force, go back."""
    from hankwatch.cli import control as commands

    raise typer.Exit(commands.control(target, order, aim, config=config, as_json=as_json))
