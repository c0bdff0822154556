"""Commands on watches: signatures and help."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hankwatch.cli.commands.application import Config, Json, group, verbosity
from hankwatch.core.errors import UsageError

if TYPE_CHECKING:
    from hankwatch.cli.watch_desk import Desks

watch_app = group(
    "watch",
    "Wait for something outside, then react: arm, list, steer and check watches. In an agent's turn they speak for that agent.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="A watch, as `watch list` names it.")]
Home = Annotated[
    str | None, typer.Option("--home", metavar="RUN|DIR", help="The execution that new watches belong to.")
]


Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="Ask `hankwatch serve` there instead of this machine.")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="Holds the token for --server (else HANKWATCH_TOKEN).")
]


def _desks(config: Path | None, server: str | None, token_file: Path | None) -> "Desks":
    """Who answers."""
    if server is None:
        from hankwatch.cli.watch_desk import OnThisMachine

        if token_file is not None:
            raise UsageError("--token-file goes with --server")
        return OnThisMachine(config)
    from hankwatch.cli.watch_server import OnServer

    return OnServer(server, token_file)


@watch_app.command(name="create")
def watch_create(
    source: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A JSON request, `-` for stdin.")] = None,
    *,
    condition: Annotated[str | None, typer.Option(help="What is waited for, in words.")] = None,
    command: Annotated[
        str | None, typer.Option("--command", help="A shell command: exit 0 holds, 2 never will, 75 no claim.")
    ] = None,
    test: Annotated[str | None, typer.Option("--test", help="As --command; its last line joins the reason.")] = None,
    document: Annotated[Path | None, typer.Option("--document", help="A file that is there.")] = None,
    pointer: Annotated[str | None, typer.Option(help="JSON Pointer to the value in --document.")] = None,
    after: Annotated[str | None, typer.Option(metavar="TIME", help="So long from now: 90s, 10m, 2h, 1d.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="INSTANT", help="ISO-8601 with an offset.")] = None,
    check: Annotated[str | None, typer.Option("--check", metavar="NAME[@VERSION]", help="A registered check.")] = None,
    args: Annotated[
        list[str] | None, typer.Option("--arg", metavar="KEY=VALUE", help="For --check; JSON or text.")
    ] = None,
    event: Annotated[list[str] | None, typer.Option("--event", metavar="TYPE", help="An event in --home.")] = None,
    change: Annotated[bool, typer.Option("--change", help="Fire when the value moves, not when it holds.")] = False,
    repeat: Annotated[
        bool | None, typer.Option("--repeat/--once", help="Go on after firing (default with --change).")
    ] = None,
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="Between two checks.")] = None,
    expires_in: Annotated[str | None, typer.Option(metavar="TIME", help="Give up after so long (default 1d).")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="INSTANT", help="Give up then.")] = None,
    stall_after: Annotated[int | None, typer.Option(help="Tell once after so many checks without a change.")] = None,
    prompt: Annotated[str | None, typer.Option(help="What the woken session is to do.")] = None,
    session: Annotated[str | None, typer.Option(help="The session in --home that it wakes.")] = None,
    kind: Annotated[str | None, typer.Option(help="watch, agent_watch or monitor.")] = None,
    actions: Annotated[
        list[str] | None, typer.Option("--action", help="in_app, wake, hook; default: all that fit.")
    ] = None,
    notify_on: Annotated[list[str] | None, typer.Option("--notify-on", help="A signal that is told.")] = None,
    watch_id: Annotated[str | None, typer.Option("--id", help="Its id (else made from the condition).")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of the one with this id.")] = False,
    home: Home = None,
    server: Server = None,
    token_file: TokenFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Arm a watch, from options or from a JSON file."""
    from hankwatch.cli import watch as commands

    asked = commands.Asked(
        condition=condition,
        command=command,
        test=test,
        document=document,
        pointer=pointer,
        after=after,
        at=at,
        check=check,
        args=tuple(args or ()),
        event=tuple(event or ()),
        fields={
            "trigger": "change" if change else None,
            "repeat": repeat,
            "interval_s": commands.seconds("--interval", interval),
            "expires_in_s": commands.seconds("--expires-in", expires_in),
            "deadline": commands.instant_text(deadline),
            "stall_after": stall_after,
            "run_prompt": prompt,
            "session": session,
            "kind": kind,
            "actions": actions,
            "notify_on": notify_on,
            "id": watch_id,
            "replace": replace or None,
        },
    )
    raise typer.Exit(
        commands.create(asked, source, home=home, desks=_desks(config, server, token_file), as_json=as_json)
    )


@watch_app.command(name="list")
def watch_list(
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only ids that begin so.")] = "",
    *,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
    active: Annotated[bool, typer.Option("--active", help="Leave out those that have ended.")] = False,
    server: Server = None,
    token_file: TokenFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """List watches: how they stand, what was seen last, what was told, and whether anybody checks them."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(
        commands.list_(
            prefix, session=session, active=active, desks=_desks(config, server, token_file), as_json=as_json
        )
    )


@watch_app.command(name="show")
def watch_show(
    watch_id: Id, *, server: Server = None, token_file: TokenFile = None, config: Config = None, as_json: Json = False
) -> None:
    """Show one watch with its latest checks and everything it has told."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(commands.show(watch_id, desks=_desks(config, server, token_file), as_json=as_json))


@watch_app.command(name="update")
def watch_update(
    watch_id: Id,
    *,
    condition: Annotated[str | None, typer.Option(help="Another one starts it afresh.")] = None,
    change: Annotated[bool | None, typer.Option("--change/--met", help="What it fires on; starts afresh.")] = None,
    repeat: Annotated[bool | None, typer.Option("--repeat/--once", help="Whether it goes on after firing.")] = None,
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="Between two checks.")] = None,
    expires_in: Annotated[str | None, typer.Option(metavar="TIME", help="Give up so long from now.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="INSTANT", help="Give up then.")] = None,
    stall_after: Annotated[int | None, typer.Option(help="Checks without a change; starts its count afresh.")] = None,
    prompt: Annotated[str | None, typer.Option(help="What the woken session is to do.")] = None,
    notify_on: Annotated[list[str] | None, typer.Option("--notify-on", help="A signal that is told.")] = None,
    clear: Annotated[
        list[str] | None, typer.Option("--clear", help="deadline, interval, stall-after or prompt: as if never set.")
    ] = None,
    server: Server = None,
    token_file: TokenFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Change an active watch; what is not named stays, and so does what its checks have found."""
    from hankwatch.cli import watch as commands

    fields = {
        "condition": condition,
        "trigger": None if change is None else "change" if change else "met",
        "repeat": repeat,
        "interval_s": commands.seconds("--interval", interval),
        "expires_in_s": commands.seconds("--expires-in", expires_in),
        "deadline": commands.instant_text(deadline),
        "stall_after": stall_after,
        "run_prompt": prompt,
        "notify_on": notify_on,
    }
    raise typer.Exit(
        commands.update(watch_id, fields, clear or [], desks=_desks(config, server, token_file), as_json=as_json)
    )


@watch_app.command(name="cancel")
def watch_cancel(
    watch_id: Id, *, server: Server = None, token_file: TokenFile = None, config: Config = None, as_json: Json = False
) -> None:
    """End a watch; it stays listed for a while. Nothing of it fires any more."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(commands.cancel(watch_id, desks=_desks(config, server, token_file), as_json=as_json))


@watch_app.command(name="clear")
def watch_clear(
    watch_id: Id, *, server: Server = None, token_file: TokenFile = None, config: Config = None, as_json: Json = False
) -> None:
    """End a watch and forget it."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(commands.clear(watch_id, desks=_desks(config, server, token_file), as_json=as_json))


@watch_app.command(name="approve")
def watch_approve(
    watch_id: Id, *, server: Server = None, token_file: TokenFile = None, config: Config = None, as_json: Json = False
) -> None:
    """Activate a proposal, and check it at once."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(commands.approve(watch_id, desks=_desks(config, server, token_file), as_json=as_json))


@watch_app.command(name="reject")
def watch_reject(
    watch_id: Id, *, server: Server = None, token_file: TokenFile = None, config: Config = None, as_json: Json = False
) -> None:
    """End a proposal without activating it."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(commands.reject(watch_id, desks=_desks(config, server, token_file), as_json=as_json))


@watch_app.command(name="check")
def watch_check(
    watch_id: Id, *, server: Server = None, token_file: TokenFile = None, config: Config = None, as_json: Json = False
) -> None:
    """Check an active watch now; 1 when it could not be checked, or can no longer come true."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(commands.check(watch_id, desks=_desks(config, server, token_file), as_json=as_json))


@watch_app.command(name="apply")
def watch_apply(
    source: Annotated[Path, typer.Argument(metavar="FILE", help='A JSON set, `{"watches": […]}`; `-` for stdin.')],
    *,
    owner: Annotated[str, typer.Option(metavar="NAME", help="Whose watches are to be exactly these.")],
    home: Home = None,
    server: Server = None,
    token_file: TokenFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make an owner's applied watches be exactly those of a file; a second time changes nothing."""
    from hankwatch.cli import watch as commands

    raise typer.Exit(
        commands.apply(source, owner=owner, home=home, desks=_desks(config, server, token_file), as_json=as_json)
    )


@watch_app.command(name="engine")
def watch_engine(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="An execution, or a folder of them (else all).")
    ] = None,
    *,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Check watches and carry out what they set in motion, without a server, until it is interrupted."""
    from hankwatch.cli import watch_engine as commands

    raise typer.Exit(commands.engine(folder, config=config, as_json=as_json, verbose=verbosity(context)))
