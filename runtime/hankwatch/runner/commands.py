"""A hank's shell command as an owned child: heard while it runs, ended with all it started."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ProcessNotStarted
from hankwatch.core.tasks import task_group
from hankwatch.core.text import shorten, strip_controls
from hankwatch.processes.child import Child, spawn
from hankwatch.processes.lines import Line, LineSplitter
from hankwatch.runner.control import CodonStop

COMMAND_LIMIT_S = 3_600.0
"""Longest a command may take: an install from an empty cache fits, a prompt that waits for a person does not."""

Source = Literal["stdout", "stderr"]
Hear = Callable[[Source, Line], None]
"""Gets each line as it is printed, on the loop's thread."""
Problem = Literal["command_failed", "timeout", "other"]

_TAIL_CHARS = 500


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended."""

    problem: Problem | None = None
    """What went wrong; None for exit code 0."""
    exit_code: int | None = None
    """As the shell tells it: 128 + n for signal n; None when it did not start."""
    message: str = ""
    """For people, with the end of its stderr; not redacted."""
    stopped: bool = False
    """The codon was stopped before it ended by itself."""


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands one after the other through ``/bin/sh``."""

    env: Mapping[str, str]
    """Their whole environment: the process's own with the codon's merged over it."""
    marker: str
    """Of their process trees; no other child that is alive at the time may bear it."""
    clock: Clock
    stop: CodonStop
    """A request ends the running command's tree, and keeps further ones from starting."""
    limit_s: float = COMMAND_LIMIT_S

    async def run(self, command: str, *, cwd: Path, hear: Hear) -> CommandEnd:
        """Run one command to its end; leaves no process behind, background jobs included."""
        if self.stop.reason is not None:
            return _stopped()
        errors = LineSplitter()
        expired = anyio.Event()

        def hear_errors(lines: list[Line]) -> None:
            for line in lines:
                hear("stderr", line)

        try:
            async with (
                spawn(
                    ["/bin/sh", "-c", command],
                    cwd=cwd,
                    env=self.env,
                    marker=self.marker,
                    clock=self.clock,
                    on_stderr=lambda chunk: hear_errors(errors.feed(chunk)),
                ) as child,
                task_group() as tasks,
            ):
                tasks.start_soon(self._end_on_stop, child)
                tasks.start_soon(self._end_at_limit, child, expired)
                async for line in child.lines():
                    hear("stdout", line)
                exit_ = await child.wait()
                tasks.cancel_scope.cancel()
        except ProcessNotStarted as error:
            return CommandEnd("other", message=str(error))
        hear_errors(errors.finish())
        code = exit_.code if exit_.code is not None else 128 + (exit_.signal or 0)
        if code == 0:
            return CommandEnd(exit_code=0)
        if self.stop.reason is not None:
            return _stopped()
        if expired.is_set():
            return CommandEnd("timeout", code, f"took longer than {self.limit_s:g} s{_tail(child)}")
        return CommandEnd("command_failed", code, f"exit code {code}{_tail(child)}")

    async def _end_on_stop(self, child: Child) -> None:
        asked = anyio.Event()
        self.stop.on_stop(asked.set)
        await asked.wait()
        await child.terminate_tree(self.stop.grace_s)

    async def _end_at_limit(self, child: Child, expired: anyio.Event) -> None:
        await self.clock.sleep(self.limit_s)
        expired.set()
        await child.terminate_tree(self.stop.grace_s)


def _stopped() -> CommandEnd:
    return CommandEnd("other", message="was stopped", stopped=True)


def _tail(child: Child) -> str:
    """What the child complained of last, as the second half of a sentence."""
    last = strip_controls(child.stderr_tail()).strip()[-_TAIL_CHARS:]
    return f": {shorten(last, _TAIL_CHARS)}" if last else ""
