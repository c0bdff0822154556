"""``watch engine``: checks and delivers in the foreground (spec watches 7)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from hankwatch.cli import output
from hankwatch.cli.interrupts import INTERRUPTED, until_signal
from hankwatch.cli.settings import cli_settings
from hankwatch.cli.watch_asker import Asker
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.core.text import one_line, shorten
from hankwatch.pages.words import plural
from hankwatch.processes.ourselves import OURSELVES
from hankwatch.runner.waking import WakeRuns
from hankwatch.watches.decide import Decision
from hankwatch.watches.turn import Turn
from hankwatch.watching import EngineRoom, Watching, open_watching

_SHOWN_CHARS: Final = 160


def engine(folder: Path | None, *, config: Path | None, as_json: bool, verbose: int) -> int:
    """Check and deliver until interrupted; 130 then."""
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name an execution directory, or a folder of them")
    config = None if config is None else config.resolve()  # runs that it starts stand elsewhere
    return until_signal(partial(_engine, folder, config, _Shown(as_json=as_json, is_quiet=verbose < 0)))


@dataclass(slots=True)
class _Shown:
    """Prints what engines decide."""

    as_json: bool
    is_quiet: bool
    checks: int = 0
    signals: int = 0
    _console: Console = field(init=False)

    def __post_init__(self) -> None:
        self._console = output.people(as_json=self.as_json)

    def say(self, line: str) -> None:
        if not self.is_quiet:
            self._console.print(line, markup=False, soft_wrap=True)

    def decided(self, decision: Decision) -> None:
        self.checks += 1
        watch = decision.watch
        for raised in decision.raised:
            self.signals += 1
            at = watch.finished_at or watch.last_checked_at
            if self.as_json:
                output.print_json(
                    {
                        "at": None if at is None else at.isoformat(),
                        "watch": watch.id,
                        "signal": raised.signal.value,
                        "fire": raised.fire,
                        "reason": raised.reason,
                    }
                )
            stamp = "" if at is None else at.strftime("%H:%M:%S")
            seen = f": {one_line(raised.evidence)}" if raised.evidence else ""
            line = f"{stamp} {raised.signal.value:<10} {watch.id} ({one_line(raised.reason)}){seen}"
            self.say(shorten(line, _SHOWN_CHARS))


async def _engine(folder: Path | None, config: Path | None, shown: _Shown) -> int:
    settings, environ = cli_settings(config)
    Asker(Turn.of(environ), None).require_operator("engine")
    async with open_watching(settings, environ, clock=SystemClock()) as watching:
        watching.evaluator.on_decision = shown.decided
        room = EngineRoom(watching, folder, wake_runs(watching, environ, config, shown.say))
        where = "all executions" if folder is None else output.shown_path(folder)
        shown.say(f"Checking the watches of {where}; Ctrl-C ends it")
        try:
            await room.run()
        finally:
            shown.say(f"{plural(shown.checks, 'check')}, {plural(shown.signals, 'signal')}")
    return INTERRUPTED


def wake_runs(
    watching: Watching, environ: Mapping[str, str], config: Path | None, say: Callable[[str], None]
) -> WakeRuns:
    """What starts ``hankwatch run --wake`` where a wake waits; ``config`` is absolute, since runs stand elsewhere."""
    options = [] if config is None else ["--config", str(config)]
    command = [*OURSELVES, "-q", "run", "--wake", "--headless", *options, "--execution"]
    return WakeRuns(watching.outbox, watching.clock, watching.now, command, environ, say=say)
