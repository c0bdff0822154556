"""Commands on what sentinels wrote: signatures and help."""

from typing import Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, RunNamed, group

sentinel_app = group("sentinel", "Work on what sentinels wrote.")


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
