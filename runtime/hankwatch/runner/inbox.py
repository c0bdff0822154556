"""Commands for a live run, as files in ``.hankweave/commands/`` (design "How it runs" 12).

One process writes ``<id>.json`` (temp file, rename), the run unlinks it before it acts, so that nothing is
done twice, and answers with an ``info`` or ``error`` event that carries the command's id.
"""

import os
import random
import stat
import string
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from hankwatch.config.validation import ConfigModel
from hankwatch.core.clock import Clock
from hankwatch.core.errors import InfrastructureError, OrderRefused
from hankwatch.core.files import replace_file
from hankwatch.core.limits import within
from hankwatch.events.envelope import Event
from hankwatch.events.run import ErrorEvent, Info
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.orders import Order, Orders
from hankwatch.stream.reader import JournalReader

POLL_S = 0.25
"""How often the folder is looked at."""
_LIMIT_BYTES = 16 * 1024
_AT_A_TIME = 100
"""Files of one look; the others are for the next."""
_SUFFIX = ".json"
ASIDE = "refused"
"""Folder inside of it for what is no command."""

Text = Annotated[str, Field(min_length=1, max_length=200)]


class Command(ConfigModel):
    """One file of the folder."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    """Chosen by whoever asks; the answer carries it."""
    run: Text
    """The run it is meant for; any other refuses it."""
    codon: Text | None = None
    """Runtime id of the codon it is meant for; None for whichever runs."""
    attempt: Annotated[int, Field(ge=1)] | None = None
    """Of that codon."""
    command: Annotated[Order, Field(strict=False)]
    target: Text | None = None
    """What a rollback goes back to."""
    go_on: bool = False
    """After a rollback, start the next codon at once."""


def command_id(clock: Clock) -> str:
    """A fresh id; later ones sort behind earlier ones."""
    salt = "".join(random.SystemRandom().choices(string.digits + string.ascii_lowercase, k=6))
    return f"{int(clock.now().timestamp() * 1000)}-{salt}"


@dataclass(slots=True)
class Inbox:
    """Takes the commands for one live run, one after the other."""

    run_id: str
    layout: Layout
    ledger: Ledger
    orders: Orders
    clock: Clock
    _stuck: set[str] = field(default_factory=set)
    """Names of what can be neither read nor set aside; each is told once."""

    async def run(self) -> None:
        """Take commands until cancelled."""
        while True:
            await self.take_all()
            await self.clock.sleep(POLL_S)

    async def take_all(self) -> None:
        """Take what lies in the folder; nothing before the run has begun."""
        if any(one.run_id == self.run_id for one in self.ledger.state.runs):
            for name in self._names():
                await self._take(name)

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.layout.commands) as entries:
                found = (e.name for e in entries if not e.name.startswith(".") and e.name not in {ASIDE, *self._stuck})
                return sorted(name for name, _ in zip(found, range(_AT_A_TIME), strict=False))
        except OSError:  # nobody asked for anything yet
            return []

    async def _take(self, name: str) -> None:
        try:
            command = Command.model_validate_json(_read(self.layout.commands / name))
        except (OSError, ValueError) as error:
            self._set_aside(name, _why(error))
            return
        try:
            # First, so that a crash in between loses it rather than doing it twice.
            (self.layout.commands / name).unlink()
        except OSError as error:
            self._stuck.add(name)
            self._refuse(f"Command {name!r} cannot be removed, so it is not carried out: {error.strerror}", command.id)
            return
        await self._carry_out(command)

    async def _carry_out(self, command: Command) -> None:
        try:
            self._require_meant(command)
            done = await self.orders.carry_out(command.command, command.target, go_on=command.go_on)
        except OrderRefused as error:
            self._refuse(f"Not done ({command.command}): {error}", command.id)
        else:
            self.ledger.stream.emit(Info(message=done, code="command-done", command_id=command.id))

    def _require_meant(self, command: Command) -> None:
        own = self.ledger.run.run_id  # another one after a rollback
        if command.run != own:
            raise OrderRefused(f"it is meant for run {command.run}, this is {own}")
        current = self.ledger.run.current
        if command.codon is not None and (current is None or current.codon_id != command.codon):
            raise OrderRefused(f"it is meant for codon {command.codon}, which does not run")
        if command.attempt is not None and (current is None or current.attempt != command.attempt):
            raise OrderRefused(f"it is meant for attempt {command.attempt}, which does not run")

    def _set_aside(self, name: str, why: str) -> None:
        aside = self.layout.commands / ASIDE
        try:
            aside.mkdir(exist_ok=True)
            (self.layout.commands / name).rename(aside / name)
        except OSError:
            self._stuck.add(name)
        self._refuse(f"{name!r} in the folder of commands is none ({why}); set aside, nothing was done", None)

    def _refuse(self, message: str, answers: str | None) -> None:
        self.ledger.stream.emit(
            ErrorEvent(message=message, fatal=False, severity="warning", code="command-refused", command_id=answers)
        )


def _read(path: Path) -> bytes:
    """A small regular file; never follows a link, never waits for a pipe.

    Raises:
        OSError: it cannot be read.
        ValueError: it is something else.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if path.suffix != _SUFFIX or not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"no regular file named *{_SUFFIX}")
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        raise ValueError(f"larger than {_LIMIT_BYTES} bytes")
    return content


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
    return str(error.strerror if isinstance(error, OSError) else error)


def post(layout: Layout, command: Command) -> Path:
    """Put a command where its run looks for it.

    Raises:
        InfrastructureError: it cannot be written there.
    """
    path = layout.commands / f"{command.id}{_SUFFIX}"
    try:
        layout.commands.mkdir(exist_ok=True)
        replace_file(path, command.model_dump_json(by_alias=True, exclude_defaults=True).encode())
    except OSError as error:
        raise InfrastructureError(f"the command {path} cannot be written: {error.strerror}") from error
    return path


async def ask(layout: Layout, command: Command, *, within_s: float, clock: Clock) -> Event:
    """Put a command to its live run and wait for the answer.

    Returns:
        The ``info`` or ``error`` event that answers it.

    Raises:
        OrderRefused: there was no answer in time; says whether the command was taken.
        InfrastructureError: it cannot be written.
    """
    after = layout.journal.stat().st_size
    path = post(layout, command)
    try:
        return await within(clock, within_s, lambda: _answer(layout, command, after, clock))
    except TimeoutError:
        pass
    with suppress(FileNotFoundError):
        path.unlink()
        raise OrderRefused(f"the run did not take the command within {within_s:g} s; it was withdrawn")
    raise OrderRefused(f"the run took the command and gave no answer within {within_s:g} s")


async def _answer(layout: Layout, command: Command, after: int, clock: Clock) -> Event:
    async with aclosing(JournalReader(layout.journal).tail(after, clock=clock, types={"info", "error"})) as events:
        async for event in events:
            if event.data.get("commandId") == command.id:
                return event
    raise AssertionError("a tail has no end")
