"""Starts runs for the wakes of executions in which none is live (design "How it runs" 13)."""

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ProcessNotStarted
from hankwatch.core.text import strip_controls
from hankwatch.processes.child import Child, spawn
from hankwatch.runner.layout import Layout
from hankwatch.runner.reentry import unfinished
from hankwatch.runner.summary import is_live
from hankwatch.watches.delivery import Channel, DeliveryStatus
from hankwatch.watches.outbox import Outbox
from hankwatch.watches.scope import Scope

_LOG = logging.getLogger(__name__)
STOP_S: Final = 15.0
"""What a run has to end in order, its own stop budget included."""
AGAIN_S: Final = 5.0
AGAIN_AFTER_FAILURE_S: Final = 60.0
"""Until a home whose run could not be carried out is tried again."""
_MAX_RUNS: Final = 4
_OPEN: Final = (DeliveryStatus.PENDING, DeliveryStatus.DELIVERING)


@dataclass(slots=True)
class WakeRuns:
    """One process per execution that has a wake waiting; used by one task.

    Args:
        outbox: Where wakes wait.
        clock: Paces the attempts.
        now: The instant watches live in.
        command: Runs the wakes of an execution whose path is put behind it.
        environ: What the runs are given; agents need their keys.
        say: Told of each run.
    """

    outbox: Outbox
    clock: Clock
    now: Callable[[], datetime]
    command: Sequence[str]
    environ: Mapping[str, str]
    say: Callable[[str], None] = lambda _: None
    _running: set[str] = field(default_factory=set)
    _not_before: dict[str, float] = field(default_factory=dict)

    async def start(self, scope: Scope, tasks: TaskGroup) -> None:
        """Start what waits; returns at once."""
        for home in await anyio.to_thread.run_sync(self._waiting, scope):
            if len(self._running) < _MAX_RUNS:
                self._running.add(home)
                tasks.start_soon(self._run, home)

    def _waiting(self, scope: Scope) -> list[str]:
        now, monotonic = self.now(), self.clock.monotonic()
        wakes = self.outbox.find(channel=Channel.WAKE, statuses=_OPEN)
        due: dict[str, set[str | None]] = {}
        for one in wakes:
            if one.home and (one.next_attempt_at or now) <= now:
                due.setdefault(one.home, set()).add(one.session)
        homes = due.keys() - self._running if scope.homes is None else (due.keys() - self._running) & scope.homes
        return [
            home
            for home in sorted(homes)
            if self._not_before.get(home, 0.0) <= monotonic
            and Layout(Path(home)).journal.is_file()
            and not is_live(Layout(Path(home)).journal)
            and self._can_run_any(home, due[home])
        ]

    def _can_run_any(self, home: str, sessions: Collection[str | None]) -> bool:
        """Whether not all are of a codon that waits for them: that goes on only when its run is resumed."""
        left = unfinished(Layout(Path(home)).journal)
        if left is None or left.reentry is None or any(session not in left.names for session in sessions):
            return True
        self.say(f"codon {left.codon_id} of {home} was killed while it waited; its wakes wait for a run with --resume")
        self._not_before[home] = self.clock.monotonic() + AGAIN_AFTER_FAILURE_S
        return False

    async def _run(self, home: str) -> None:
        self.say(f"waking sessions of {home}")
        code: int | None = None
        marker = f"wake-run/{hashlib.blake2b(home.encode(), digest_size=6).hexdigest()}"
        try:
            async with spawn(
                [*self.command, home], cwd=Path(home), env=self.environ, marker=marker, clock=self.clock
            ) as child:
                code = await self._attend(child)
                if code != 0:
                    said = strip_controls(child.stderr_tail()).strip().splitlines()[-1:]
                    _LOG.warning("wakes of %s: exit code %s %s", home, code, " ".join(said))
        except ProcessNotStarted as error:
            _LOG.warning("wakes of %s cannot be run: %s", home, error)
        finally:
            self._running.discard(home)
            wait_s = AGAIN_S if code == 0 else AGAIN_AFTER_FAILURE_S
            self._not_before[home] = self.clock.monotonic() + wait_s

    async def _attend(self, child: Child) -> int | None:
        """Its end; when this is cancelled it has time to end in order."""
        try:
            async for _ in child.lines():
                pass
            return (await child.wait()).code
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await child.terminate_tree(STOP_S)
            raise
