"""The command line: signatures and help only; each body lives in the module of its subject.

Bodies are imported when their command runs, so that ``--help`` loads neither a model package nor the
runtime (design rule 10).
"""

import gc
import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from hankwatch import __version__
from hankwatch.core.errors import UsageError

_COMMON = frozenset({"-q", "--quiet", "-v", "--verbose", "--debug"})

app = typer.Typer(
    name="hankwatch",
    help="Run coding agents under sentinels: watch their events, ask a model, write reports.",
    rich_markup_mode=None,  # Rich doubles the start-up of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
journal_app = typer.Typer(help="Look into a journal, or make one from a recorded stream.")
sentinel_app = typer.Typer(help="Work on what sentinels wrote.")
app.add_typer(journal_app, name="journal")
app.add_typer(sentinel_app, name="sentinel")

Json = Annotated[bool, typer.Option("--json", help="Machine output on stdout; text for people goes to stderr.")]
Run = Annotated[str, typer.Argument(metavar="[RUN]", help="A path, the beginning of an id, or `latest`.")]
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
    _help_alone(context)
    from hankwatch.cli import logs

    logs.configure(_verbosity(context))


@journal_app.callback(invoke_without_command=True)
@sentinel_app.callback(invoke_without_command=True)
def _help_alone(context: typer.Context) -> None:
    """Without a command there is only help to give."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@app.command()
def demo(
    context: typer.Context, *, execution: Annotated[Path | None, typer.Option(help="Where to run it.")] = None
) -> None:
    """Run the shipped hank offline: a recorded agent, a built-in model, real sentinels, real reports."""
    from hankwatch.cli import run as commands

    raise typer.Exit(commands.demo(execution, verbose=_verbosity(context)))


@app.command()
def run(
    context: typer.Context,
    hank: Annotated[Path, typer.Argument(help="A hank.json, or the folder that holds one.")] = Path(),
    data: Annotated[Path | None, typer.Argument(help="Data the agent may read.")] = None,
    *,
    execution: Annotated[Path | None, typer.Option("--execution", "-e", help="Run in this directory.")] = None,
    start_new: Annotated[bool, typer.Option("--start-new", "-n", help="A new run in a used directory.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last run there, or of this hank.")] = False,
    headless: Annotated[bool, typer.Option("--headless", help="Log lines instead of the live view; no keys.")] = False,
    no_autostart: Annotated[bool, typer.Option("--no-autostart", help="Each codon waits for `next`.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Copy output files of codons here.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model of all codons.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="End the run at this cost of agents, in US dollars.")] = None,
    max_time: Annotated[float | None, typer.Option(help="End the run after this time of agents, in seconds.")] = None,
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
    )
    raise typer.Exit(commands.run(options, headless=headless, as_json=as_json, verbose=_verbosity(context)))


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


@app.command()
def validate(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(help="A hank.json, its folder, one sentinel config, or a settings file.")
    ] = Path(),
    *,
    config: Config = None,
    as_json: Json = False,
    print_schema: Annotated[
        str | None, typer.Option(help="Print a JSON Schema (hank, sentinel, settings, hankweave) and stop.")
    ] = None,
) -> None:
    """Report every fault of a hank or config file, with file, line and what would be right."""
    from hankwatch.cli import validate as commands

    raise typer.Exit(
        commands.validate(path, config=config, as_json=as_json, print_schema=print_schema, verbose=_verbosity(context))
    )


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
        commands.tail(target, types=types, since=since, config=config, as_json=as_json, verbose=_verbosity(context))
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


RunNamed = Annotated[str, typer.Argument(metavar="RUN", help="A path, the beginning of an id, or `latest`.")]


@sentinel_app.command(name="retry")
def sentinel_retry(
    target: RunNamed,
    sentinel: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only this sentinel's triggers.")] = None,
    *,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Carry out failed triggers again, from the journal; refused while the run is live."""
    from hankwatch.cli import sentinels as commands

    raise typer.Exit(commands.retry(target, sentinel, config=config, as_json=as_json))


@sentinel_app.command(name="rebuild")
def sentinel_rebuild(
    target: RunNamed,
    sentinel: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only this sentinel's reports.")] = None,
    *,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Write reports anew from the journal; refused while the run is live."""
    from hankwatch.cli import sentinels as commands

    raise typer.Exit(commands.rebuild(target, sentinel, config=config, as_json=as_json))


def _verbosity(context: typer.Context) -> int:
    return int(context.obj["verbose"]) - int(context.obj["quiet"])


def main() -> NoReturn:
    """Entry point: runs a command and turns what went wrong into the documented form and exit code."""
    # What imports make stays: looking for garbage in it, now or at the end, is a quarter of a short command.
    gc.set_threshold(200_000)
    # A closed descriptor leaves None; commands still do their work and give their exit code.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the process's life
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - see above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names can hold any byte, terminals not any letter
    code = _carry_out(_common_first(sys.argv[1:]))
    gc.freeze()
    sys.exit(code)


def _common_first(arguments: list[str]) -> list[str]:
    """``-q``, ``-v`` and ``--debug`` are understood behind the command as well."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    common = [argument for argument in arguments[:end] if argument in _COMMON]
    return [*common, *(argument for argument in arguments[:end] if argument not in _COMMON), *arguments[end:]]


def _refuse_empty(arguments: list[str]) -> None:
    """An empty path would mean the working directory, which nobody who forgot to set a variable meant."""
    if any(argument == "" or (argument.startswith("--") and argument.endswith("=")) for argument in arguments):
        raise UsageError("an argument is empty", hint="is a variable in the command not set? else leave the option out")


def _carry_out(arguments: list[str]) -> int:
    try:
        _refuse_empty(arguments)
        return int(app(args=arguments, prog_name="hankwatch", standalone_mode=False) or 0)
    except Exception as error:  # noqa: BLE001 - people never get a traceback they did not ask for
        if "--debug" in arguments:
            traceback.print_exc()
        from hankwatch.cli import failure

        return failure.explain(error)
