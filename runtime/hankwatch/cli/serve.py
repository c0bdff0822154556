"""``serve``: runs and watches over HTTP, from one process that owns no run (design "How it runs" 12)."""

import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

import anyio

from hankwatch.cli import output
from hankwatch.cli.interrupts import INTERRUPTED, until_signal
from hankwatch.cli.settings import cli_settings
from hankwatch.cli.watch_engine import wake_runs
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.core.tasks import task_group
from hankwatch.options import base_dir
from hankwatch.settings import Flag, Settings
from hankwatch.watching import EngineRoom, open_watching

if TYPE_CHECKING:
    import socket

    from hankwatch.serve.auth import Door

_AT_ONCE_S: Final = 1.0
"""What is left from the second signal on."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says about listening."""

    bind: str | None
    port: int | None
    policy: Path | None

    def flags(self) -> list[Flag]:
        """As settings."""
        policy = None if self.policy is None else str(self.policy)
        values = (("bind", self.bind, "--bind"), ("port", self.port, "--port"), ("policy_file", policy, "--policy"))
        return [Flag(f"serve.{name}", value, flag) for name, value, flag in values if value is not None]


def serve(
    folder: Path | None, given: Given, *, config: Path | None, as_json: bool, verbose: int, opens: bool = False
) -> int:
    """Serve until interrupted; 130 then.

    Raises:
        UsageError: the folder is none, or others than this machine could call and nothing says who may.
        AddressTaken: the address cannot be listened on.
    """
    require_packages()
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name an execution directory, or a folder of them")
    from hankwatch.serve.auth import open_door
    from hankwatch.serve.server import listen

    config = None if config is None else config.resolve()
    settings, environ = cli_settings(config, given.flags())
    door = open_door(settings.serve.bind, settings.serve.policy_file)
    with listen(settings.serve.bind, settings.serve.port) as listening:
        shown = _Shown(as_json=as_json, is_quiet=verbose < 0, opens=opens)
        serving = partial(_serve, folder, settings, environ, config=config, door=door, listening=listening, shown=shown)
        return until_signal(serving, stop_s=settings.run.stop_budget_s, again_s=_AT_ONCE_S)


def require_packages() -> None:
    """Refuse to begin what cannot be served.

    Raises:
        UsageError: the extra is not installed.
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UsageError("this needs packages that are not installed", hint="pip install 'hankwatch[serve]'")


@dataclass(frozen=True, slots=True)
class _Shown:
    as_json: bool
    is_quiet: bool
    opens: bool
    """In a browser too."""

    def address(self, address: str, folder: Path) -> None:
        where = output.shown_path(folder)
        if self.as_json:
            output.print_json({"address": address, "folder": str(folder.absolute())})
        self.say(f"Serving {where} at {address}; Ctrl-C ends it")
        if self.opens:
            Thread(target=self._open, args=(address,), daemon=True).start()  # a browser may take its time

    def _open(self, address: str) -> None:
        if not webbrowser.open(address):
            self.say("No browser could be opened; open the address yourself")

    def say(self, line: str) -> None:
        if not self.is_quiet:
            output.people(as_json=self.as_json).print(line, markup=False, soft_wrap=True)


async def _serve(
    folder: Path | None,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    config: Path | None,
    door: "Door",
    listening: "socket.socket",
    shown: _Shown,
) -> int:
    from hankwatch.serve.context import Serving
    from hankwatch.serve.policy import PolicyAuthorizer
    from hankwatch.serve.server import address_of, serving_on
    from hankwatch.serve.shelf import Shelf

    shelf = Shelf(folder or base_dir(settings, environ))
    authorizer = None if door.policy is None else PolicyAuthorizer(door.policy)
    async with open_watching(settings, environ, clock=SystemClock(), authorizer=authorizer) as watching:
        room = EngineRoom(watching, folder, wake_runs(watching, environ, config, shown.say))
        serving = Serving(door, shelf, watching.clock, watching.service)
        async with task_group() as tasks:
            tasks.start_soon(room.run)
            async with serving_on(listening, serving):
                shown.address(address_of(listening), shelf.folder)
                await anyio.sleep_forever()
    return INTERRUPTED
