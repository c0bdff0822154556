"""One attempt of one codon, as a straight line of phases (spec hank 2, design "How it runs" 6)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from hankwatch.agents.translate import Translator
from hankwatch.core.clock import Clock
from hankwatch.core.errors import HankwatchError, InfrastructureError
from hankwatch.core.redaction import Redactor
from hankwatch.events.payload import Payload
from hankwatch.events.run import (
    CodonCompleted,
    CodonStarted,
    ErrorEvent,
    Info,
    StateSnapshot,
    TokenUsage,
)
from hankwatch.events.shapes import FailureReason
from hankwatch.runner.control import CodonStop, Control
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.state import tokens_json, total_cost
from hankwatch.runner.turn import Turn, TurnEnd
from hankwatch.runner.verdict import Verdict, decide, not_begun, not_run
from hankwatch.sentinels.manager import Attached, SentinelManager
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.sentinel import SentinelSummary
from hankwatch.stream.stream import EventStream

_STDERR_SHOWN_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """A sentinel that was left out of a codon."""

    codon_id: str
    sentinel_id: str
    reason: str


@dataclass(slots=True)
class CodonRun:
    """Carries out one attempt. Nobody cancels it: stops go through ``Control``."""

    job: CodonJob
    ledger: Ledger
    stream: EventStream
    manager: SentinelManager
    control: Control
    redactor: Redactor
    layout: Layout
    clock: Clock
    drain_s: float
    """What each sentinel has per attempt to finish, in seconds."""
    summaries: list[SentinelSummary] = field(default_factory=list)
    """What each sentinel did, once it has ended."""
    not_loaded: list[NotLoaded] = field(default_factory=list)
    """Sentinels that were skipped, required ones included."""
    _stop: CodonStop = field(default_factory=CodonStop)
    _pending_session: bool = False
    _noted: list[dict[str, Any]] = field(default_factory=list)

    async def run(self) -> None:
        """The attempt from CodonStarted to its sentinels' unloading.

        Raises:
            InfrastructureError: the journal failed.
        """
        job = self.job
        self.ledger.move("CodonStarted", codon_id=job.codon_id)
        self.control.enter(self._stop)
        started_at = self.ledger.codon.started_at
        scope = CodonScope(job.codon_id, job.base_codon_id, job.name, job.description, started_at)
        try:
            async with self.manager.attach(scope, job.sentinels) as attached:
                # Holds for every end but the one this line comes to by itself.
                attached.unload_reason = "shutdown"
                self.not_loaded = [NotLoaded(job.codon_id, f.sentinel_id, f.reason) for f in attached.failures]
                self._note_sentinels(attached)
                verdict = await self._work(attached)
                await self._finish_sentinels(attached)
                await self._complete(attached, verdict)
                await self._aftermath(attached)
                if not self.control.stopping:
                    attached.unload_reason = "codon-complete"
            # Asked after the unloading: what was given up there is counted too.
            self.summaries = attached.summaries()
        finally:
            self.control.leave()

    async def _work(self, attached: Attached) -> Verdict:
        if attached.required_failures:
            return self._required_failure(attached)
        if self._stop.reason is not None:
            return not_begun(self._stop.reason)
        self.ledger.move_codon("starting")
        job = self.job
        translator = Translator(
            job.codon_id, job.base_codon_id, tool_result_chars=job.tool_result_chars, redact=self.redactor.text
        )
        try:
            end = await self._turn(translator).run()
        except InfrastructureError:
            raise
        except HankwatchError as error:
            return self._spawn_failure(error)
        self._close_account(translator)
        verdict = decide(end.outcome, end.exit, self._stop.reason, idle_s=job.idle_s)
        if verdict.status == "failed":
            self._explain(verdict, end)
        return verdict

    def _turn(self, translator: Translator) -> Turn:
        job, codon, run_id = self.job, self.ledger.codon, self.ledger.run_id
        command = job.program.command(job.request)
        return Turn(
            program=job.program,
            command=command,
            cwd=self.layout.agent_root,
            env={**job.env, **command.env},
            marker=f"{run_id}/{job.codon_id}/{codon.attempt}",
            log_path=self.log_path,
            idle_s=job.idle_s,
            stream=self.stream,
            translator=translator,
            redactor=self.redactor,
            stop=self._stop,
            clock=self.clock,
            emit=lambda payloads: self._emit(payloads, translator),
            on_spawned=self._spawned,
            on_started=self._started,
        )

    @property
    def log_path(self) -> Path:
        """Where the agent's raw lines are kept."""
        codon = self.ledger.codon
        return self.layout.agent_log(self.ledger.run_id, codon.codon_id, codon.attempt, self.job.program.name)

    @property
    def _log_shown(self) -> str:
        return str(self.log_path.relative_to(self.layout.root))

    def _spawned(self, pid: int) -> None:
        metadata = {"agent": self.job.program.name, "pid": pid, "log": self._log_shown}
        self.ledger.move_codon("initializing", metadata)

    def _started(self, session_id: str) -> None:
        job = self.job
        self._pending_session = not session_id
        self.stream.emit(Info(message=f"Started codon {job.codon_id} with session ID: {session_id or 'not known yet'}"))
        started = CodonStarted(
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            codon_name=job.name,
            codon_description=job.description,
            session_id=session_id,
            start_time=self.ledger.codon.started_at,
            prompt_metadata=job.prompt_metadata,
        )
        self.ledger.move_codon("running", {"sessionId": session_id} if session_id else None, started)

    def _emit(self, payloads: list[Payload], translator: Translator) -> None:
        if self._pending_session and translator.session_id:
            self._pending_session = False
            self.stream.emit(Info(message=f"Codon {self.job.codon_id} has session ID: {translator.session_id}"))
        for payload in payloads:
            if isinstance(payload, TokenUsage) and not payload.is_final:
                delta = {"costDelta": payload.total_cost, "tokensDelta": _token_counts(payload)}
                self.ledger.move("CostsIncremented", delta, payload, codon_id=self.job.codon_id)
            else:
                self.stream.emit(payload)

    def _close_account(self, translator: Translator) -> None:
        self._emit(translator.finish(), translator)
        final = {"finalCost": translator.account.cost_usd, "finalTokens": tokens_json(translator.account.tokens)}
        self.ledger.move("CodonFinalCostSet", final, codon_id=self.job.codon_id)
        left_out = {name: count for name, count in translator.counts.items() if count}
        if left_out:
            listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in left_out.items())
            message = f"Of the agent's output this became no event of its own: {listed}; see {self._log_shown}"
            self.stream.emit(Info(message=message, code="left-out", details=left_out))

    def _required_failure(self, attached: Attached) -> Verdict:
        failures = attached.required_failures
        message = "; ".join(f"sentinel {failure.sentinel_id}: {failure.reason}" for failure in failures)
        reason = FailureReason(
            type="sentinel-load-failure",
            retriable=False,
            message=message,
            sentinel_refs=[failure.sentinel_id for failure in failures],
        )
        self._error(f"A required sentinel could not be loaded: {message}", "SENTINEL_LOAD_FAILURE", fatal=True)
        return not_run(reason)

    def _spawn_failure(self, error: HankwatchError) -> Verdict:
        hint = f" ({error.hint})" if error.hint else ""
        self._error(f"The agent could not be started: {error}{hint}", error.code, fatal=True)
        return not_run(FailureReason(type="unknown", retriable=False, message=str(error)))

    def _explain(self, verdict: Verdict, end: TurnEnd) -> None:
        reason = verdict.reason.message if verdict.reason else None
        context: dict[str, Any] = {"facts": list(verdict.facts)}
        if end.stderr.strip():
            context["stderr"] = end.stderr.strip()[-_STDERR_SHOWN_CHARS:]
        self._error(f"Codon {self.job.codon_id} failed: {reason}", "codon-failed", context=context)

    def _error(self, message: str, code: str, *, fatal: bool = False, context: dict[str, Any] | None = None) -> None:
        self.stream.emit(
            ErrorEvent(
                message=message,
                codon=self.job.codon_id,
                base_codon_id=self.job.base_codon_id,
                fatal=fatal,
                severity="fatal" if fatal else "codon",
                code=code,
                context=context,
            )
        )

    async def _finish_sentinels(self, attached: Attached) -> None:
        ids = [state["id"] for state in attached.states()]
        if not ids:
            return
        count = len(ids)
        if self.ledger.codon.status == "running":
            self.ledger.move_codon("completing-sentinels", {"sentinelCount": count, "sentinelIds": ids})
        self.stream.emit(Info(message=f"Completing work for {count} sentinel(s)..."))
        await self._drain(attached)
        self.stream.emit(Info(message=f"Sentinel work completed ({count} sentinel(s))"))
        self._note_sentinels(attached)

    async def _complete(self, attached: Attached, verdict: Verdict) -> None:
        job, codon = self.job, self.ledger.codon
        metadata: dict[str, Any] = {"facts": list(verdict.facts), "exitStatus": verdict.exit_status.model_dump()}
        if verdict.reason is not None:
            metadata["failureReason"] = verdict.reason.model_dump()
        completed = CodonCompleted(
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            success=verdict.status == "completed",
            cost=total_cost((codon.cost_usd, _sentinel_cost(attached))),
            duration=self._duration_ms(),
            exit_status=verdict.exit_status,
            failure_reason=verdict.reason,
        )
        # One batch: whoever resumes finds both or neither.
        self.ledger.move_codon(verdict.status, metadata, completed)
        await self.stream.sync()

    async def _aftermath(self, attached: Attached) -> None:
        """What follows codon.completed, each step still observed and drained (spec hank 2.7)."""
        await self._drain(attached)
        self._note_sentinels(attached)
        run = self.ledger.run
        done = [record.as_json() for record in reversed(run.codons) if record.final]
        self.stream.emit(
            StateSnapshot.model_validate(
                {
                    "completedCodons": done,
                    "fileTree": [],
                    "totalCost": run.cost_usd,
                    "totalTime": max(0, self.stream.now_ms() - self.ledger.started_ms),
                    "isRollingBack": False,
                }
            )
        )
        await self._drain(attached)
        self._note_sentinels(attached)

    async def _drain(self, attached: Attached) -> None:
        """Let the sentinels finish; a stop meanwhile leaves them what the stop budget allows."""
        if not self.control.stopping:
            with anyio.CancelScope() as scope, self.control.on_stop(scope.cancel):
                await attached.drain(self.drain_s)
            if not scope.cancelled_caught:
                return
        assert self.control.stop_by_s is not None
        left_s = self.control.stop_by_s - self.clock.monotonic() - self.control.reserve_s
        await attached.drain(max(0.0, min(left_s, self.drain_s)), fresh_budget=True)

    def _note_sentinels(self, attached: Attached) -> None:
        states = attached.states()
        if states != self._noted:
            self._noted = states
            data = {"sentinelStates": states, "totalCost": _sentinel_cost(attached)}
            self.ledger.move("SentinelStatesUpdated", data, codon_id=self.job.codon_id)

    def _duration_ms(self) -> int:
        return max(0, self.stream.now_ms() - self.ledger.codon_started_ms)


def _sentinel_cost(attached: Attached) -> float | None:
    return None if attached.unpriced_calls else attached.cost_usd


def _token_counts(usage: TokenUsage) -> dict[str, int]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheCreationTokens": usage.cache_creation_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
    }
