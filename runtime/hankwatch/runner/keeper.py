"""Makes the checkpoints of a run and tells them; a run whose git is missing or fails goes on without (reference 3.7)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.errors import CheckpointFailed, OrderRefused
from hankwatch.core.limits import within
from hankwatch.events.run import ErrorEvent, Info
from hankwatch.hank.model import Codon, Hank
from hankwatch.runner.checkpoints import Checkpoints, Key, Saved, Status
from hankwatch.runner.control import Control
from hankwatch.runner.globs import Globs
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger

_NAMED = 10
"""Checkpoints that are listed for people."""
_SHARE = 1 / 3
"""Of what a stopping run keeps back for its end, what its checkpoints leave to the rest."""

T = TypeVar("T")


@dataclass(slots=True)
class Keeper:
    """The checkpoints of one process's run, each told by ``CheckpointCreated`` once.

    A hank without any ``checkpointedFiles`` has none. Where git is missing or fails, an ``error`` says so and there
    are no further ones; what the codons did counts all the same.
    """

    hank: Hank
    ledger: Ledger
    control: Control
    layout: Layout
    environ: Mapping[str, str]
    """Where git is looked for by its ``PATH``."""
    clock: Clock
    _checkpoints: Checkpoints | None = None
    _is_off: bool = field(init=False)
    _turn: anyio.Lock = field(default_factory=anyio.Lock)
    """Git works for one at a time."""

    def __post_init__(self) -> None:
        self._is_off = not any(codon.checkpointed_files for _, codon in self.hank.codons())

    async def begin(self) -> None:
        """Once a RunStarted is told: go on from the checkpoint the run goes on from, or make a fresh run's initial one.

        Raises:
            InfrastructureError: the journal failed.
        """
        ledger, run = self.ledger, self.ledger.run
        self._checkpoints = None  # its children bear the run's id
        if (source := run.source) is not None:
            await self._do(lambda made: made.begin(run.run_id, from_sha=source.checkpoint_sha))
            return

        async def initial(made: Checkpoints) -> str:
            await made.begin(run.run_id)
            return await made.initial(run.run_id, _globs(c for _, c in self.hank.codons()), ledger.stream.now_ms())

        if (sha := await self._do(initial)) is not None:
            ledger.move("InitialCheckpointSet", {"sha": sha})

    async def save(self, status: Status, verdict: Mapping[str, Any] | None = None) -> str | None:
        """The sha of the current attempt's checkpoint, made and told unless it was; None when there can be none.

        ``verdict`` is what the attempt comes to: a run that is killed before it says so goes on from here.

        Raises:
            InfrastructureError: the journal failed.
        """
        ledger, codon = self.ledger, self.ledger.codon
        if status in codon.checkpoints:
            return codon.checkpoints[status]
        globs = self.globs({record.base_codon_id for record in ledger.state.thread})
        key = Key(ledger.run_id, codon.codon_id, codon.attempt, status)
        at_ms = ledger.stream.now_ms()
        saved = await self._do(lambda made: made.save(key, codon.name or "", globs, at_ms))
        if saved is None:
            return None
        if saved.unreadable:
            self._tell_unreadable(saved)
        data: dict[str, Any] = {
            "checkpointType": saved.type,
            "status": status,
            "sha": saved.sha,
            "branch": f"run-{ledger.run_id}",
        }
        if verdict is not None:
            data["verdict"] = dict(verdict)
        ledger.move("CheckpointCreated", data, codon_id=codon.codon_id)
        return saved.sha

    def globs(self, codon_ids: Container[str | None]) -> Globs:
        """What the checkpoints of these codons, by their authored ids, hold."""
        return _globs(one for _, one in self.hank.codons() if one.id in codon_ids)

    async def list_all(self) -> str:
        """Tell the checkpoints of the runs that led to now, one ``checkpoint.list`` each; the same for people.

        Raises:
            OrderRefused: they cannot be read.
        """
        rows = []
        try:
            async with self.repository() as checkpoints:
                for run in self.ledger.state.chain:
                    self.ledger.stream.emit(listing := await checkpoints.listing(run.run_id))
                    rows += listing.checkpoints
        except CheckpointFailed as error:
            raise OrderRefused(str(error)) from error
        named = ", ".join(f"{row.codon_id}:{row.status} {row.sha[:12]}" for row in rows[-_NAMED:])
        return f"{len(rows)} checkpoint(s)" + (f"; the last: {named}" if rows else "")

    @asynccontextmanager
    async def repository(self) -> AsyncIterator[Checkpoints]:
        """The checkpoints, for nobody else while the body runs.

        Raises:
            GitMissing, CheckpointFailed: they cannot be opened.
        """
        async with self._turn:
            if self._checkpoints is None:
                # No codon's attempt has such a marker: its last part is a number there.
                marker = f"{self.ledger.run_id}/checkpoints/git"
                self._checkpoints = await Checkpoints.open(
                    self.layout, environ=dict(self.environ), marker=marker, clock=self.clock
                )
            yield self._checkpoints

    async def _do(self, work: Callable[[Checkpoints], Awaitable[T]]) -> T | None:
        """What ``work`` comes to; None, and told why, where it cannot be done."""
        if self._is_off:
            return None
        try:
            return await self._in_time(partial(self._carry_out, work))
        except TimeoutError:
            self._is_off = True
            self._tell("A checkpoint was not made: the run had to stop before it was done", "checkpoint-late")
        except (CheckpointFailed, OSError) as error:
            self._is_off = True
            code, hint = "checkpoint-failed", ""
            if isinstance(error, CheckpointFailed):
                code, hint = error.code, f" ({error.hint})" if error.hint else ""
            self._tell(f"No checkpoints are made for the rest of this run: {error}{hint}", code)
        return None

    async def _carry_out(self, work: Callable[[Checkpoints], Awaitable[T]]) -> T:
        async with self.repository() as checkpoints:
            return await work(checkpoints)

    async def _in_time(self, work: Callable[[], Awaitable[T]]) -> T:
        """``work``; once the run is asked to stop, anew within what is left for that. It is safe to be cut short."""
        control = self.control
        if not control.stopping:
            with anyio.CancelScope() as scope, control.on_stop(scope.cancel):
                return await work()
        assert control.stop_by_s is not None
        left_s = control.stop_by_s - self.clock.monotonic() - control.reserve_s * _SHARE
        return await within(self.clock, max(0.0, left_s), work)

    def _tell_unreadable(self, saved: Saved) -> None:
        named = ", ".join(f"{one.path or 'the workspace'} ({one.error})" for one in saved.unreadable[:10])
        message = (
            f"{len(saved.unreadable)} path(s) could not be read for the checkpoint of {saved.key.codon_id}: {named}"
        )
        self.ledger.stream.emit(Info(message=message, code="checkpoint-incomplete"))

    def _tell(self, message: str, code: str) -> None:
        self.ledger.stream.emit(ErrorEvent(message=message, fatal=False, severity="warning", code=code))


def _globs(codons: Iterable[Codon]) -> Globs:
    return Globs(dict.fromkeys(pattern for codon in codons for pattern in codon.checkpointed_files))
