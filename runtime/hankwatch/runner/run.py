"""One run of a hank: codon after codon, from RunStarted to its end (design "How it runs" 6)."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from hankwatch.core.tasks import task_group
from hankwatch.events.run import ErrorEvent, Info, ServerIdle
from hankwatch.processes.limits import ends_within
from hankwatch.runner import outputs
from hankwatch.runner.budget import has_limits, summary
from hankwatch.runner.codon import CodonRun, NotLoaded
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import GoBack
from hankwatch.runner.crash import end_orphans, mark_crashed
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.plan import Finish, StartCodon, last_done, next_step, step_of
from hankwatch.runner.reentry import Unfinished, unfinished
from hankwatch.runner.state import RunRecord, latest
from hankwatch.runner.timelines import answer, settle
from hankwatch.runner.wakes import WakeDesk
from hankwatch.sentinels.sentinel import SentinelSummary
from hankwatch.stream.reader import JournalReader

_LOOK_S = 1.0
"""How often a run that waits for ``next`` looks whether a watch asks for something."""
_NAMED = 20
"""Live watches that an event names."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    success: bool
    """Every codon completed or was skipped; of a run that only ran wakes, every one of their turns completed."""
    reason: str
    """For people: why it ended."""
    execution: Path
    """The execution directory; paths of reports are relative to it."""
    record: RunRecord
    """Its codons: status, cost, tokens, failure reason of each attempt."""
    sentinels: tuple[SentinelSummary, ...]
    """Per sentinel of every codon, in order: what it did."""
    not_loaded: tuple[NotLoaded, ...] = ()
    """Sentinels that were left out, and why."""
    live_watches: tuple[str, ...] = ()
    """Ids of the watches of the execution that are active still; nobody checks them from here on."""


@dataclass(slots=True)
class Run:
    """Carries out the codons in order until one fails, all are done, or it is asked to stop."""

    jobs: Mapping[str, CodonJob]
    """By authored codon id."""
    context: RunContext
    new_run_id: Callable[[], str]
    """For the run that goes on after a rollback."""
    name_holder: Callable[[str], None]
    """Told when the process carries out another run."""
    resume: bool = False
    """Go on from the latest run of the execution."""
    hank_changed: bool = False
    """The hank is not the one that the execution began with."""
    desk: WakeDesk | None = None
    """Where their wakes are taken."""
    only_wakes: bool = False
    """Run the turns that watches ask for, and no codon of the hank."""
    _left: Unfinished | None = None
    """What an earlier process left in the middle, until it is taken up."""
    _live_watches: tuple[str, ...] = ()
    _end: Finish | None = None
    """Why it ends before all is done."""
    _last: CodonRun | None = None
    """The codon before, unless a rollback took its rig away."""
    _summaries: list[SentinelSummary] = field(default_factory=list)
    _not_loaded: list[NotLoaded] = field(default_factory=list)

    async def run(self) -> RunResult:
        """The whole run.

        Raises:
            InfrastructureError: the journal failed; the run has no end in it then.
        """
        ledger = self.context.ledger
        await end_orphans(ledger, self.context.clock)
        await settle(self.context)
        self.context.manager.close_left_loaded()
        conditions = await self._conditions()
        if self._end is not None:  # what an earlier run left open cannot be closed: it stands as it did
            return self._result(self._end)
        ledger.start_run(conditions)
        if self.hank_changed:
            message = "hank.json has changed since this execution began; what is completed is not done again"
            self.context.stream.emit(Info(message=message, code="hank-changed"))
        await self.context.keeper.begin()
        watches = self.context.watches
        async with watches.watching() if watches is not None else nullcontext():
            if not self._is_re_entered:
                if watches is not None and self._left is not None:
                    await watches.cancel(self._left.names)
                await self._run_wakes()  # of a session that is waited in, the codon takes them
            while isinstance(step := await self._next(), StartCodon):
                await self._carry_out(step, CodonRun.run)
                await self._run_wakes()
            await self._say_goodbye(step)
        ledger.move("RunCompleted" if step.success else "RunFailed", {"reason": step.reason})
        return self._result(step)

    def _result(self, end: Finish) -> RunResult:
        root, record = self.context.layout.root, self.context.ledger.run
        summaries, not_loaded = tuple(self._summaries), tuple(self._not_loaded)
        return RunResult(end.success, end.reason, root, record, summaries, not_loaded, self._live_watches)

    async def _conditions(self) -> Mapping[str, Any]:
        """What the run starts from, once what an earlier one left open is closed."""
        ledger, hank = self.context.ledger, self.context.hank
        last = ledger.state.current
        if last is None or not (self.resume or self.only_wakes):
            mark_crashed(ledger)
            return {"type": "fresh"}
        if not self.only_wakes and last.codons and (last.status == "running" or self._outputs_are_missing()):
            step = step_of(hank, ledger.state.thread, last.codons[-1].codon_id)
            if step is not None:
                with ledger.on_behalf_of(last.run_id):
                    await self._carry_out(step, CodonRun.go_on)
        if not self.only_wakes:
            self._left = unfinished(self.context.layout.journal)
        mark_crashed(ledger)
        after = last_done(hank, ledger.state.thread)
        sha = latest(ledger.state.thread)[after].checkpoint_sha if after is not None else ""
        source = {"runId": last.run_id, "afterCodon": after, "checkpointSha": sha}
        wakes = {"onlyWakes": True} if self.only_wakes else {}
        return {"type": "continuation", "source": source, "reason": "continue", **wakes}

    @property
    def _is_re_entered(self) -> bool:
        """Whether the first step goes on with a codon that was waiting; any other one begins anew."""
        left, step = self._left, self._step()
        if left is None or left.reentry is None or not isinstance(step, StartCodon) or step.codon_id != left.codon_id:
            return False
        return step.codon.wait_for_watches and self.jobs[step.codon.id].program.name == left.reentry.agent

    def _outputs_are_missing(self) -> bool:
        """Whether copying the outputs of the last codon was stopped or failed."""
        missing = False
        for event in JournalReader(self.context.layout.journal).read(types={"state.transition", ErrorEvent.TYPE}):
            if event.data.get("transitionType") == "CodonStarted":
                missing = False
            missing |= event.data.get("code") in {outputs.STOPPED, outputs.FAILED}
        return missing

    async def _run_wakes(self) -> bool:
        """Carry out what watches ask of sessions that no running codon has, one after the other; whether any was."""
        watches, ran = self.context.watches, False
        if watches is None or self.desk is None:
            return False
        while not self.context.control.stopping and self._end is None:
            if (wake := await watches.next_wake()) is None:
                break
            step, job = self.desk.turn(wake)
            await CodonRun(step, job, self.context).run()
            ran = True
        return ran

    async def _hold(self, step: StartCodon | Finish) -> GoBack | None:
        """Wait for ``next``, and do meanwhile what watches ask for; a turn that runs is not cut short."""
        over = anyio.Event()
        async with task_group() as tasks:
            tasks.start_soon(self._wake_until, over, step)
            asked = await self.context.control.hold()
            over.set()
        return asked

    async def _wake_until(self, over: anyio.Event, step: StartCodon | Finish) -> None:
        while not over.is_set():
            if await self._run_wakes() and not over.is_set():
                self.context.stream.emit(_idle(step, self.context.ledger.run))
            await ends_within(self.context.clock, _LOOK_S, over.wait)

    async def _say_goodbye(self, end: Finish) -> None:
        hank, budget, context = self.context.hank, self.context.budget, self.context
        await self._tell_live_watches()
        last_words = "All codons completed successfully. Server shutting down."
        is_whole = end.success and not self.only_wakes
        context.stream.emit(Info(message=last_words if is_whole else f"Shutting down: {end.reason}"))
        if not end.success and context.ledger.run.codons:
            await context.keeper.save("exit")
        if has_limits(hank, budget):
            context.stream.emit(summary(hank, budget, context.ledger.state.attempts))

    async def _tell_live_watches(self) -> None:
        watches = self.context.watches
        if watches is None or not (live := await watches.live()):
            return
        self._live_watches = live
        message = f"Watches of this execution are active still: {len(live)}; `hankwatch watch engine` checks them"
        self.context.stream.emit(Info(message=message, code="live-watches", details={"watchIds": list(live[:_NAMED])}))

    async def _next(self) -> StartCodon | Finish:
        """The next step; without autostart, once it was asked for: a codon that failed is tried again then."""
        step, control = self._step(), self.context.control
        if control.autostart or self.only_wakes or control.stopping or self._end is not None:
            return step
        self.context.stream.emit(_idle(step, self.context.ledger.run))
        while (asked := await self._hold(step)) is not None:
            if await answer(asked, self.context, self.new_run_id(), self.name_holder):
                self._last = None
                if asked.go_on:
                    break
                message = "Rolled back; waiting until next is asked for"
                self.context.stream.emit(ServerIdle(reason="rollback-completed", message=message))
        return self._step(again=True)

    def _step(self, *, again: bool = False) -> StartCodon | Finish:
        thread, stopping = self.context.ledger.state.thread, self.context.control.stopping
        if self.only_wakes:
            return self._end or self._wakes_done()
        return self._end or next_step(self.context.hank, thread, stopping=stopping, again=again)

    def _wakes_done(self) -> Finish:
        """What is left of the hank is no failure of a process that was asked for the wakes alone."""
        failed = [codon for codon in self.context.ledger.run.codons if codon.status != "completed"]
        if failed:
            return Finish(success=False, reason=f"turns that watches asked for failed: {len(failed)}")
        if self.context.control.stopping:
            return Finish(success=False, reason="stopped")
        return Finish(success=True, reason="turns that watches asked for are done")

    async def _carry_out(self, step: StartCodon, part: Callable[[CodonRun], Awaitable[None]]) -> None:
        reentry = self._left.reentry if self._left is not None and self._is_re_entered else None
        self._left = None
        job = replace(self.jobs[step.codon.id], codon_id=step.codon_id)
        codon = CodonRun(step, job, self.context, reentry)
        if self._last is not None and self._last.step.codon_id == step.codon_id:
            codon.take_rig_of(self._last)
        await part(codon)
        self._last = codon
        self._summaries += codon.summaries
        self._not_loaded += codon.not_loaded
        if codon.failure is not None:
            self._end = Finish(success=False, reason=codon.failure)


def _idle(step: StartCodon | Finish, run: RunRecord) -> ServerIdle:
    """Says what the run waits with for ``next``."""
    if isinstance(step, Finish):
        if step.success:
            return ServerIdle(reason="all-codons-completed", message="All codons completed; next ends the run")
        failed = run.codons[-1]
        why = (failed.failure_reason or {}).get("message") or "for no known reason"
        message = f"Codon {failed.codon_id} failed ({why}); next tries it again, rollback goes back, stop ends the run"
        return ServerIdle(reason="codon-completed", message=message)
    return ServerIdle(
        reason="codon-completed" if run.codons else "startup",
        message=f"Waiting with codon {step.codon_id} until next is asked for",
    )
