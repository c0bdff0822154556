"""One codon as a straight line of phases, its sentinels around it (spec hank 2, design "How it runs" 6)."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from hankwatch.events.run import (
    ArchiveCompleted,
    ArchivePartial,
    CodonCompleted,
    ErrorEvent,
    Info,
    LoopIterationCompleted,
    StateSnapshot,
)
from hankwatch.runner.archive import Owner, codon_folder, loop_folder
from hankwatch.runner.attempt import Attempt
from hankwatch.runner.budget import Allowance, allowance
from hankwatch.runner.checkpoints import Status
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import CodonStop, StopReason
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.loops import iteration_completed
from hankwatch.runner.observers import Observers
from hankwatch.runner.outputs import Outputs
from hankwatch.runner.plan import IterationEnd, StartCodon, is_done, iteration_end, retry_config, retry_wait_ms
from hankwatch.runner.reentry import GOES_ON, Reentry
from hankwatch.runner.sessions import SESSION_CODON, resumable
from hankwatch.runner.snapshots import snapshot
from hankwatch.runner.state import CodonRecord, latest, total_cost
from hankwatch.runner.verdict import Verdict, from_json
from hankwatch.sentinels.manager import Attached
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.sentinel import SentinelSummary
from hankwatch.stream.reader import JournalReader

_ARCHIVED = frozenset({ArchiveCompleted.TYPE, ArchivePartial.TYPE})
_AFTER_OUTPUTS = _ARCHIVED | {LoopIterationCompleted.TYPE}
_CLOSING = frozenset({CodonCompleted.TYPE, StateSnapshot.TYPE, LoopIterationCompleted.TYPE})
_CHECKPOINT: Mapping[str, Status] = {"completed": "completed", "failed": "error", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """A sentinel that was left out of a codon."""

    codon_id: str
    sentinel_id: str
    reason: str


@dataclass(slots=True)
class CodonRun:
    """Carries out one codon, all its attempts included. Nobody cancels it: stops go through ``Control``."""

    step: StartCodon
    job: CodonJob
    context: RunContext
    reentry: Reentry | None = None
    """An earlier process was killed while the codon waited for its watches: it goes on waiting."""
    summaries: list[SentinelSummary] = field(default_factory=list)
    """What each sentinel did, once it has ended."""
    not_loaded: list[NotLoaded] = field(default_factory=list)
    """Sentinels that were skipped, required ones included."""
    failure: str | None = None
    """Why the run cannot go on after it, although it completed."""
    _stop: CodonStop = field(default_factory=CodonStop)
    _rig_is_ready: bool = False
    _last_copied: Path | None = None
    _allowance: Allowance = field(default_factory=Allowance)

    async def run(self) -> None:
        """The codon from CodonStarted to its sentinels' unloading.

        Raises:
            InfrastructureError: the journal failed.
        """
        self._start()
        async with self._watched() as attached:
            await self._attempts(attached, Observers(attached, self.job.codon_id, self.context))

    def take_rig_of(self, earlier: "CodonRun") -> None:
        """An earlier run of the same codon, in the same workspace, may have set its rig up."""
        self._rig_is_ready, self._last_copied = earlier._rig_is_ready, earlier._last_copied

    async def go_on(self) -> None:
        """Carry the codon on that an earlier process did last, from where its journal ends.

        Only what can follow its agent's end is done, and only what the journal does not have yet.

        Raises:
            InfrastructureError: the journal failed.
        """
        record = self.context.ledger.codon
        told = self._told()
        if not record.verdict or self._is_closed(told):
            return
        async with self._watched() as attached:
            observers = Observers(attached, self.job.codon_id, self.context)
            if CodonCompleted.TYPE not in told:
                verdict = from_json(record.verdict)
                self._complete(verdict, observers, await self._checkpoint(verdict), self._spent_usd())
            if StateSnapshot.TYPE not in told:
                await self._aftermath(observers)
            await self._close(observers, told)

    def _spent_usd(self) -> float:
        """What a killed process's sentinels cost in its last attempt; their accounts run over all attempts."""
        records = [record for record in self.context.ledger.run.codons if record.codon_id == self.job.codon_id]
        costs = [sum(state.get("totalCost") or 0.0 for state in record.sentinels) for record in records[-2:]]
        return max(0.0, costs[-1] - sum(costs[:-1]))

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[Attached]:
        """Under the codon's sentinels, and open to requests."""
        job, context = self.job, self.context
        context.control.enter(self._stop)
        started_at = context.ledger.codon.started_at
        scope = CodonScope(job.codon_id, job.base_codon_id, job.name, job.description, started_at)
        try:
            async with context.manager.attach(scope, job.sentinels) as attached:
                # Holds for every end but the one this line comes to by itself.
                attached.unload_reason = "shutdown"
                self.not_loaded = [NotLoaded(job.codon_id, f.sentinel_id, f.reason) for f in attached.failures]
                yield attached
                if not context.control.stopping:
                    attached.unload_reason = "codon-complete"
            # Asked after the unloading: what was given up there is counted too.
            self.summaries = attached.summaries()
        finally:
            context.control.leave()

    def _told(self) -> Collection[str]:
        """What the journal has of what follows this attempt's agent: types, of archives ``<type> <owner>``."""
        types = {"state.transition", *_CLOSING, *_ARCHIVED}
        told: set[str] = set()
        for event in JournalReader(self.context.layout.journal).read(types=types):
            if event.data.get("transitionType") == "CodonStarted":
                told.clear()
            told.add(f"{event.type} {event.data['codonId']}" if event.type in _ARCHIVED else event.type)
        return told

    def _is_closed(self, told: Collection[str]) -> bool:
        """Nothing is left to be done for this codon."""
        wanted = {CodonCompleted.TYPE, StateSnapshot.TYPE}
        # What leaves no event of its own is done again; that changes nothing then.
        archives = bool(self.job.codon.archive_on_success or self._output_dir)
        if (end := self._iteration_end()) is not None:
            wanted.add(LoopIterationCompleted.TYPE)
            archives |= bool(end.place.loop.archive_on_success)
        return not archives and wanted.issubset(told)

    def _start(self) -> None:
        context = self.context
        self._allowance = allowance(context.hank, context.budget, self.step, context.ledger.state.attempts)
        data: dict[str, Any] = {"codonName": self.job.name, "baseCodonId": self.job.base_codon_id}
        if self.step.place is not None:
            data["loopContext"] = self.step.place.as_json()
        if self.reentry is not None:  # told at once, so that it is known whenever this process is killed
            data[GOES_ON] = self.reentry.as_json()
        if allowed := self._allowance.as_json():
            data["budget"] = allowed
        self.context.ledger.move("CodonStarted", data, codon_id=self.job.codon_id)

    async def _attempts(self, attached: Attached, observers: Observers) -> None:
        observers.note()
        await self._attempt(attached, observers)
        while await self._tries_again():
            self.reentry = None
            self._start()
            observers.begin_attempt()
            await self._attempt(attached, observers)
        await self._close(observers, frozenset())

    async def _attempt(self, attached: Attached, observers: Observers) -> None:
        ledger = self.context.ledger
        attempt = Attempt(
            job=self.job,
            context=self.context,
            stop=self._stop,
            missing=attached.required_failures,
            previous=self._previous(),
            allowance=self._allowance,
            rig_is_ready=self._rig_is_ready,
            reports=attached.report_files,
            last_copied=self._last_copied,
            reentry=self.reentry,
        )
        verdict = await attempt.work()
        self._rig_is_ready, self._last_copied = attempt.rig_is_ready, attempt.last_copied
        ids = [state["id"] for state in attached.states()]
        if ids and ledger.codon.status == "running":
            told = {"sentinelCount": len(ids), "sentinelIds": ids, "verdict": verdict.as_json()}
            ledger.move_codon("completing-sentinels", {**told, **attempt.metadata})
        await observers.finish_attempt()
        self._complete(verdict, observers, {**attempt.metadata, **await self._checkpoint(verdict)})
        await self._aftermath(observers)

    def _previous(self) -> CodonRecord | None:
        """Whose session ``continue-previous`` means."""
        state, codon_id = self.context.ledger.state, self.job.codon_id
        if codon_id.startswith(SESSION_CODON):  # a later turn has the id of the one that it goes on from
            return resumable(codon_id.removeprefix(SESSION_CODON), state)
        return latest(state.thread).get(self.step.previous or "")

    async def _checkpoint(self, verdict: Verdict) -> dict[str, str]:
        """Keep the workspace as the attempt left it; what its last transition says of that."""
        if self.context.ledger.codon.final:  # told before a kill
            return {}
        sha = await self.context.keeper.save(_CHECKPOINT[verdict.status], verdict.as_json())
        return {"checkpointSha": sha} if sha is not None else {}

    def _complete(
        self, verdict: Verdict, observers: Observers, of_agent: dict[str, Any], spent_usd: float = 0.0
    ) -> None:
        """``spent_usd``: by sentinels of a process that was killed."""
        job, ledger = self.job, self.context.ledger
        codon, failed = ledger.codon, verdict.status == "failed"
        ignored = failed and job.codon.on_failure == "ignore" and not self.context.control.stopping
        metadata = {**verdict.as_json(), **of_agent, "extensionCount": codon.extensions}
        if verdict.status != "completed":
            metadata["failedDuring" if failed else "skippedDuring"] = codon.status
        if ignored:
            metadata["failureIgnored"] = True
        completed = CodonCompleted(
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            success=verdict.status == "completed",
            cost=total_cost((codon.cost_usd, observers.take_cost_usd(), spent_usd)),
            duration=max(0, self.context.stream.now_ms() - ledger.codon_started_ms),
            exit_status=verdict.exit_status,
            failure_reason=verdict.reason,
            failure_ignored=True if ignored else None,
            budget_exceeded=verdict.budget_exceeded,
        )
        if codon.final:  # all but the end of the batch below was written before a kill
            self.context.stream.emit(completed)
            return
        ledger.move_codon(verdict.status, metadata, completed)
        if ignored:
            self._info(f"Codon {job.codon_id} failed; the run goes on, as its onFailure says")

    async def _aftermath(self, observers: Observers) -> None:
        """What follows codon.completed, each step still observed and drained (spec hank 2.7)."""
        await self.context.stream.sync()
        await observers.drain()
        self.context.stream.emit(snapshot(self.context.ledger))
        await observers.drain()

    async def _close(self, observers: Observers, told: Collection[str]) -> None:
        """What follows the last attempt, except what is ``told`` already; each step is observed and drained."""
        ledger, stream = self.context.ledger, self.context.stream
        place, codon = self.step.place, self.job.codon
        if ledger.codon.status == "completed":
            if not any(kind in told or f"{kind} {self.job.codon_id}" in told for kind in _AFTER_OUTPUTS):
                await self._copy_out(observers)
                if self.failure is not None:
                    return  # the rest follows once all is copied, in a run that goes on from here
            in_loop = (place.loop.id, place.iteration) if place else (None, 0)
            folder = codon_folder(codon.id, loop_id=in_loop[0], iteration=in_loop[1])
            await self._archive(codon.archive_on_success, folder, (self.job.codon_id, codon.id), observers, told)
        if (end := self._iteration_end()) is None:
            return
        loop = end.place.loop
        if end.is_final:
            await self._archive(loop.archive_on_success, loop_folder(loop.id), (loop.id, None), observers, told)
        if LoopIterationCompleted.TYPE not in told:
            stream.emit(iteration_completed(end, ledger.state.thread, stream.now_ms()))
            await observers.drain()

    @property
    def _output_dir(self) -> Path | None:
        return self.context.output_dir if self.job.codon.output_files else None

    async def _copy_out(self, observers: Observers) -> None:
        """Copy what the codon made to the output directory; the run ends where that fails."""
        job, context, ledger = self.job, self.context, self.context.ledger
        if self._output_dir is None:
            return
        self._stop = CodonStop()  # the one before may have ended the agent
        context.control.enter(self._stop)
        end = await Outputs(
            groups=job.codon.output_files,
            output_dir=self._output_dir,
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            layout=context.layout,
            env=job.rig_env,
            marker=f"{ledger.marker}/outputs",
            log_path=context.layout.agent_log(ledger.run_id, job.codon_id, ledger.codon.attempt, "outputs"),
            stream=context.stream,
            redactor=context.redactor,
            stop=self._stop,
            clock=context.clock,
            last_copied=self._last_copied,
        ).run()
        if end.stopped and context.control.stopping:
            self.failure = f"stopped while outputs of codon {job.codon_id} were copied"
        elif end.failures and not end.stopped:
            self.failure = f"outputs of codon {job.codon_id} failed"
        await observers.drain()

    async def _archive(
        self,
        patterns: Sequence[str],
        folder: str,
        ids: tuple[str, str | None],
        observers: Observers,
        told: Collection[str],
    ) -> None:
        """Archive for the owner ``ids``: its id, and the authored one of a codon."""
        context = self.context
        if not patterns or any(f"{kind} {ids[0]}" in told for kind in _ARCHIVED):
            return
        owner = Owner(context.ledger.run_id, ids[0], folder)
        archive = partial(context.archive.archive, owner, patterns, context.stream.now_ms())
        try:
            payload = (await anyio.to_thread.run_sync(archive)).payload(*ids)
        except OSError as error:
            message = f"Nothing was archived for {ids[0]}: {error}"
            context.stream.emit(
                ErrorEvent(message=message, codon=ids[0], fatal=False, severity="operation", code="archive-failed")
            )
            return
        if payload is not None:
            context.stream.emit(payload)
            await observers.drain()

    def _iteration_end(self) -> IterationEnd | None:
        ledger = self.context.ledger
        if self.step.place is None or not is_done(ledger.codon):
            return None
        return iteration_end(self.step.place, latest(ledger.state.thread))

    async def _tries_again(self) -> bool:
        """Wait for the next attempt; False when there is none."""
        job, control, clock = self.job, self.context.control, self.context.clock
        attempts = [record for record in self.context.ledger.run.codons if record.codon_id == job.codon_id]
        wait_ms = retry_wait_ms(job.codon, attempts)
        if wait_ms is None or self._stop.reason is StopReason.FORCE_STOP:
            return False
        self._stop = CodonStop()
        control.enter(self._stop)
        number, limit = len(attempts) + 1, retry_config(job.codon).max_attempts
        self._info(f"Retrying codon {job.codon_id} (attempt {number}/{limit})")
        with anyio.CancelScope() as scope:
            self._stop.on_stop(scope.cancel)
            await clock.sleep(wait_ms / 1000)
        return not control.stopping

    def _info(self, message: str) -> None:
        self.context.stream.emit(Info(message=message))
