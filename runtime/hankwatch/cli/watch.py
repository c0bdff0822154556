"""``watch …``: what people ask of watches, over the store (spec watches 5)."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from hankwatch.cli import output
from hankwatch.cli import watch_lines as lines
from hankwatch.cli.interrupts import until_signal
from hankwatch.cli.watch_desk import Desk, Desks, document
from hankwatch.core.errors import ConfigError, UsageError, WatchInvalid, WatchNotFound
from hankwatch.pages import watch_words as words
from hankwatch.watches.files import placed, read_watch
from hankwatch.watches.requests import WatchRequest, read_edit, read_request
from hankwatch.watches.service import described
from hankwatch.watches.watch import Outcome, Status, Watch

_TIME: Final = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>s|m|h|d)?")
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SHOWN_CHECKS: Final = 10
_CLEARABLE: Final = {"interval": "interval_s", "stall-after": "stall_after", "prompt": "run_prompt"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A watch as the options of ``create`` describe it."""

    condition: str | None
    command: str | None
    test: str | None
    document: Path | None
    pointer: str | None
    after: str | None
    at: str | None
    check: str | None
    args: tuple[str, ...]
    event: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of the request, by their names there; None where nothing was said."""

    @property
    def is_empty(self) -> bool:
        """No option was given."""
        said = (self.condition, self.command, self.test, self.document, self.pointer, self.after, self.at, self.check)
        return not any([*said, *self.args, *self.event, *(value is not None for value in self.fields.values())])

    def request(self) -> WatchRequest:
        """What is asked for.

        Raises:
            UsageError: not exactly one way to check is named.
            WatchInvalid: it is no request.
        """
        ways = [way for way in self._ways() if way is not None]
        if len(ways) != 1 or self.condition is None:
            raise UsageError(
                "a watch needs --condition and exactly one of --command, --test, --document, --after, --at, --check"
                " and --event",
                hint="or write it as JSON and name the file",
            )
        given = {name: value for name, value in self.fields.items() if value is not None}
        return read_request({"condition": self.condition, "verifier": ways[0], **given})

    def _ways(self) -> Sequence[dict[str, Any] | None]:
        if (self.pointer is not None and self.document is None) or (self.args and self.check is None):
            raise UsageError("--pointer goes with --document, --arg with --check")
        pointer = {} if self.pointer is None else {"pointer": self.pointer}
        args = dict(_argument(arg) for arg in self.args)
        after_s = seconds("--after", self.after)
        return (
            None if self.command is None else {"type": "command", "command": self.command},
            None if self.test is None else {"type": "test", "command": self.test},
            None if self.document is None else {"type": "document", "path": str(self.document), **pointer},
            None if after_s is None else {"type": "time", "after_s": after_s},
            None if self.at is None else {"type": "time", "at": instant_text(self.at)},
            None if self.check is None else {"type": "check", "name": self.check, "args": args},
            None if not self.event else {"type": "event", "trigger": {"type": "event", "on": list(self.event)}},
        )


def seconds(option: str, text: str | None) -> float | None:
    """``90``, ``90s``, ``10m``, ``2h``, ``1d`` in seconds.

    Raises:
        UsageError: it is none of them.
    """
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text!r} is no time", hint="write 90s, 10m, 2h or 1d")
    return float(match["count"]) * _UNITS[match["unit"] or "s"]


def instant_text(text: str | None) -> str | float | None:
    """An instant as requests take it: epoch seconds are a number."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def create(asked: Asked, source: Path | None, *, home: str | None, desks: Desks, as_json: bool) -> int:
    """Arm a watch; 0."""
    if source is not None and not asked.is_empty:
        raise UsageError("a file and options that describe a watch are both given", hint="write it all in the file")

    async def work(desk: Desk) -> int:
        written = None if source is None else document(source)
        try:
            armed = await desk.create(asked.request() if written is None else read_watch(written))
        except WatchInvalid as error:
            if written is None:
                raise
            raise ConfigError(list(placed(error, written))) from error
        if as_json:
            output.print_json({**described(armed.watch), "is_new": armed.is_new})
        else:
            output.say(lines.armed(armed, desk.now()))
            await _warn_when_nobody_looks(desk)
        return 0

    return until_signal(partial(_at, desks, work, home))


def list_(prefix: str, *, session: str | None, active: bool, desks: Desks, as_json: bool) -> int:
    """List watches; 0."""

    async def work(desk: Desk) -> int:
        statuses = (Status.PROPOSED, Status.ACTIVE) if active else tuple(Status)
        watches, told = await desk.find(prefix, session=session, statuses=statuses), words.counted(await desk.told())
        liveness, notices, now = await desk.liveness(), await desk.notices(_SHOWN_CHECKS), desk.now()
        if as_json:
            for watch in watches:
                output.print_json(lines.as_json(watch, told, liveness, now))
            return 0
        lines.print_watches(output.stdout(), watches, told, now)
        lines.print_notices(output.stdout(), notices, now)
        if (said := words.set_here((await desk.settings()).values())) is not None:
            output.say(said)
        if (warning := words.not_looked_at(watches, liveness, now)) is not None:
            output.say(warning)
        return 0

    if desks.is_empty():
        if not as_json:
            output.say("No watches yet. `hankwatch watch create --help` shows how one is armed.")
        return 0
    return until_signal(partial(_at, desks, work))


def show(watch_id: str, *, desks: Desks, as_json: bool) -> int:
    """Show one watch; 0."""

    async def work(desk: Desk) -> int:
        watch, checks = await desk.get(watch_id), await desk.checks(watch_id, _SHOWN_CHECKS)
        told = await desk.told(watch_id)
        if as_json:
            output.print_json(lines.whole_json(watch, checks, told))
            return 0
        lines.print_watch(output.stdout(), watch, checks, told, desk.now())
        await _warn_when_nobody_looks(desk)
        return 0

    return _of_one(watch_id, work, desks)


def update(watch_id: str, fields: Mapping[str, Any], clear: Sequence[str], *, desks: Desks, as_json: bool) -> int:
    """Change a watch; 0."""
    given = {name: value for name, value in fields.items() if value is not None}
    for name in clear:
        if name != "deadline" and name not in _CLEARABLE:
            raise UsageError(
                f"--clear {name!r} is nothing that can be cleared", hint="deadline, interval, stall-after, prompt"
            )
        given |= {"clear_deadline": True} if name == "deadline" else {_CLEARABLE[name]: None}
    if not given:
        raise UsageError("nothing was named that is to change")
    edit = read_edit(given)
    return _change(watch_id, lambda desk: desk.update(watch_id, edit), desks, as_json)


def cancel(watch_id: str, *, desks: Desks, as_json: bool) -> int:
    """End a watch; 0, also when it had ended."""
    return _change(watch_id, lambda desk: desk.cancel(watch_id), desks, as_json)


def clear(watch_id: str, *, desks: Desks, as_json: bool) -> int:
    """End a watch and forget it; 0."""

    async def work(desk: Desk) -> int:
        if not await desk.clear(watch_id):
            raise WatchNotFound(watch_id)
        if as_json:
            output.print_json({"id": watch_id, "cleared": True})
        else:
            output.say(f"{watch_id} is gone")
        return 0

    return _of_one(watch_id, work, desks)


def approve(watch_id: str, *, desks: Desks, as_json: bool) -> int:
    """Activate a proposal; 0."""
    return _change(watch_id, lambda desk: desk.approve(watch_id), desks, as_json)


def reject(watch_id: str, *, desks: Desks, as_json: bool) -> int:
    """End a proposal; 0."""
    return _change(watch_id, lambda desk: desk.reject(watch_id), desks, as_json)


def check(watch_id: str, *, desks: Desks, as_json: bool) -> int:
    """Check a watch now; 0, or 1 when that was impossible or the condition is."""

    async def work(desk: Desk) -> int:
        before = await desk.get(watch_id)
        if before.status is not Status.ACTIVE:
            raise WatchInvalid([f"watch {watch_id} is {before.status.value}; only active watches are checked"])
        after = await desk.check(watch_id)
        if as_json:
            output.print_json(described(after))
        else:
            output.say(lines.checked(before, after))
        return 1 if after.last_outcome in {Outcome.UNAVAILABLE, Outcome.TERMINAL_UNSATISFIED} else 0

    return _of_one(watch_id, work, desks)


def apply(source: Path, *, owner: str, home: str | None, desks: Desks, as_json: bool) -> int:
    """Make an owner's set be that of a file; 0."""

    async def work(desk: Desk) -> int:
        applied = await desk.apply(owner, document(source))
        changes = {"armed": applied.armed, "kept": applied.kept, "cancelled": applied.cancelled}
        if as_json:
            output.print_json({word: list(ids) for word, ids in changes.items()})
            return 0
        lines.print_changes(output.stdout(), changes)
        await _warn_when_nobody_looks(desk)
        return 0

    return until_signal(partial(_at, desks, work, home))


def _change(watch_id: str, work: Callable[[Desk], Awaitable[Watch]], desks: Desks, as_json: bool) -> int:
    async def change(desk: Desk) -> int:
        watch = await work(desk)
        if as_json:
            output.print_json(described(watch))
        else:
            output.say(lines.stands(watch, desk.now()))
        return 0

    return _of_one(watch_id, change, desks)


def _of_one(watch_id: str, work: Callable[[Desk], Awaitable[int]], desks: Desks) -> int:
    if desks.is_empty():
        raise WatchNotFound(watch_id)
    return until_signal(partial(_at, desks, work))


async def _at(desks: Desks, work: Callable[[Desk], Awaitable[int]], home: str | None = None) -> int:
    async with desks.open(home) as desk:
        return await work(desk)


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--arg {text!r} is no KEY=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


async def _warn_when_nobody_looks(desk: Desk) -> None:
    if not desk.warns:
        return
    watches = await desk.find(statuses=(Status.ACTIVE,))
    if (warning := words.not_looked_at(watches, await desk.liveness(), desk.now())) is not None:
        output.stderr().print(warning, markup=False)
