"""The work of one attempt: its agent's turns, from the first checks to the verdict (spec hank 2)."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import anyio

from hankwatch.agents.program import Command, Resumes, TurnRequest
from hankwatch.agents.signals import Streamed
from hankwatch.agents.translate import Translator
from hankwatch.core.errors import HankwatchError, InfrastructureError
from hankwatch.events.activity import AssistantAction
from hankwatch.events.codec import parse_stamp
from hankwatch.events.payload import Payload
from hankwatch.events.run import CodonExtended, CodonStarted, ErrorEvent, TokenUsage
from hankwatch.events.shapes import FailureReason, TokenCounts
from hankwatch.runner.budget import Allowance, Exceeded, Meter, time_is_up
from hankwatch.runner.compaction import compaction_lack
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import CodonStop, StopReason
from hankwatch.runner.files import FileTracker
from hankwatch.runner.globs import Globs
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.mcp import mcp_lack, with_mcp
from hankwatch.runner.pricing import estimate_usd
from hankwatch.runner.reentry import Reentry
from hankwatch.runner.rigs import Rig, RigEnd
from hankwatch.runner.sessions import session_to_continue, session_usage, turns_of
from hankwatch.runner.state import CodonRecord, tokens_json, usage_json
from hankwatch.runner.steering import AgentSteering
from hankwatch.runner.telling import Telling
from hankwatch.runner.tracked import TrackedFiles
from hankwatch.runner.turn import Turn, TurnEnd
from hankwatch.runner.verdict import Verdict, after_waiting, decide, not_begun, not_run, nothing_left
from hankwatch.runner.waiting import TimeLimit, Waiting
from hankwatch.runner.wakes import Wake
from hankwatch.runner.watched import Watched
from hankwatch.sentinels.loader import LoadFailure
from hankwatch.watchdog import Watchdog
from hankwatch.watchdog.tool_classes import classes_of
from hankwatch.watches.turn import Turn as WatchTurn


@dataclass(slots=True)
class Attempt:
    """Carries out one attempt up to its verdict; nobody cancels it."""

    job: CodonJob
    context: RunContext
    stop: CodonStop
    missing: tuple[LoadFailure, ...]
    """Required sentinels that could not be loaded."""
    previous: CodonRecord | None
    """The codon before, whose session ``continue-previous`` means."""
    allowance: Allowance
    """What it may use."""
    rig_is_ready: bool = False
    """An earlier attempt has set the rig up."""
    reports: frozenset[str] = frozenset()
    """Files that its sentinels write, relative to the execution directory."""
    last_copied: Path | None = None
    """Target of the rig's last copy."""
    reentry: Reentry | None = None
    """An earlier process was killed while it waited: it goes on waiting."""
    _continued: str | None = None
    _session_turn: int = 1
    """Which turn of the session is the latest."""
    _depth: int = field(init=False)
    """Of the watches that the turn arms."""
    _tell: Telling = field(init=False)
    _translator: Translator = field(init=False)
    _tracker: FileTracker = field(init=False)
    _meter: Meter = field(init=False)
    _exceeded: Exceeded | None = None
    _time: TimeLimit = field(init=False)
    _waiting: Waiting = field(init=False)
    _end: TurnEnd | None = None
    _pending_session: bool = False
    _steering: AgentSteering = field(init=False)
    _watched: Watched | None = None
    _nudge_turns: int = 0
    _messages: int = 0
    _problem: str | None = None
    """The error that the agent told last."""

    def __post_init__(self) -> None:
        job = self.job
        ends_the_run = job.codon.on_failure == "abort" and self.context.control.autostart
        self._tell = Telling(self.context.stream, job.codon_id, job.base_codon_id, ends_the_run)
        self._meter, self._depth = Meter(self.allowance), job.depth
        self._time = TimeLimit(self.context.stream)
        self._waiting = Waiting(job, self.context, self.stop, self._time, self._stands)
        self._translator = Translator(
            job.codon_id,
            job.base_codon_id,
            tool_result_chars=job.tool_result_chars,
            redact=self.context.redactor.text,
        )
        root = self.context.layout.agent_root
        files = TrackedFiles(
            Globs(job.codon.checkpointed_files),
            job.codon_id,
            job.base_codon_id,
            roots=(str(root), str(root.resolve())),
            is_report=lambda path: f"{root.name}/{path}" in self.reports,
        )
        self._tracker = FileTracker(root, files, emit=self.context.stream.emit, clock=self.context.clock)
        self._steering = AgentSteering(
            job.program,
            lambda nudge: replace(job.request, prompt=nudge, turn=self._session_turn + 1),
            self.stop,
            lambda: self._translator.session_id,
            self.context.clock.monotonic,
        )

    async def work(self) -> Verdict:
        """What the attempt comes to; every event up to the agent's end is emitted then.

        Raises:
            InfrastructureError: the journal failed.
        """
        if self.missing:
            return self._required_failure()
        if (stopped := self._stopped()) is not None:
            return stopped
        if (spent := self.allowance.spent) is not None:
            self._tell.budget_exceeded(spent)
            return nothing_left(spent)
        rig = await self._set_up()
        if rig is not None and rig.failure is not None:
            return self._rig_failure(rig)
        self.context.ledger.move_codon("starting")
        if rig is not None:
            self.rig_is_ready, self.last_copied = True, rig.last_copied
            kept = await self.context.keeper.save("rig-setup") is not None
            self.context.stream.emit(rig.completed(self.job.codon_id, self.job.base_codon_id, created_checkpoint=kept))
        try:
            return await self._watch_turns()
        except InfrastructureError:
            raise
        except HankwatchError as error:
            if self._end is not None:  # of a further turn: what was before it counts
                self._close_account()
                await self._tracker.finish()
            return self._spawn_failure(error)
        finally:
            self._time.cancel()

    def _stopped(self) -> Verdict | None:
        """What it comes to when it was stopped before its agent was started."""
        return None if self.stop.reason is None else not_begun(self.stop.reason)

    async def _watch_turns(self) -> Verdict:
        """The agent's turns, and what happens to the workspace meanwhile."""
        command = None if self.reentry is not None else self._first_command()
        with anyio.CancelScope() as scope:
            self.stop.on_stop(scope.cancel)
            await self._tracker.start()
        if (stopped := self._stopped()) is not None:
            return stopped
        async with self._tracker.watching():
            with self._under_watchdog():
                verdict = await self._run_turns(command)
            if verdict.status == "completed":  # also for an agent that never said anything
                self._started(self._translator.session_id)
            self._close_account()  # at once: the time until here is the agent's
        await self._tracker.finish()
        if self._end is not None:
            self._tell.failure(verdict, self._end.stderr, self._problem)
        return verdict

    def _under_watchdog(self) -> AbstractContextManager[None]:
        job, stream = self.job, self.context.stream
        if job.watchdog is None:
            return nullcontext()
        watchdog = Watchdog(
            job.watchdog,
            job.codon_id,
            emit=stream.emit,
            steering=self._steering,
            tool_classes=classes_of(job.program.name),
        )
        self._watched = Watched(watchdog, self._steering, stream, self._tell_blind)
        return self._watched.listening(f"watchdog of {job.codon_id}")

    async def _set_up(self) -> RigEnd | None:
        """Carry out the rig; None when there is nothing to set up."""
        job, context = self.job, self.context
        if not job.codon.rig_setup or self.rig_is_ready or self.reentry is not None:
            return None
        return await Rig(
            operations=job.codon.rig_setup,
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            codon_name=job.name,
            hank_dir=context.hank_dir,
            layout=context.layout,
            env=job.rig_env,
            marker=f"{context.ledger.marker}/rig",
            log_path=self._log_of("rig"),
            stream=context.stream,
            redactor=context.redactor,
            stop=self.stop,
            clock=context.clock,
            ignore_failures=context.ignore_rig_failures,
        ).run()

    def _rig_failure(self, rig: RigEnd) -> Verdict:
        assert rig.failure is not None
        if rig.stopped and self.stop.reason is not None:
            return not_begun(self.stop.reason)
        self._tell.error(f"The rig could not be set up: {rig.message}", "rig-failed", fatal=True)
        kind: Literal["timeout", "unknown"] = "timeout" if rig.failure.failure_type == "timeout" else "unknown"
        return not_run(FailureReason(type=kind, retriable=True, message=f"rig: {rig.message}"))

    def _first_command(self) -> Command:
        job = self.job
        if (lack := compaction_lack(job.codon, job.program)) is not None:
            self._tell.info(f"Codon {job.codon_id}: {lack}", code="auto-compact")
        if (lack := mcp_lack(job.codon, job.program)) is not None:
            self._tell.info(f"Codon {job.codon_id}: {lack}", code="no-mcp")
        if job.codon.continuation_mode == "fresh":
            return job.program.command(job.request)
        session_id = session_to_continue(self.previous, job.program)
        self._carry(session_id)
        self.context.last_session.recall(session_id, self._translator)
        self._session_turn += turns_of(session_id, self.context.ledger.state.thread)
        self._tell.info(f"Continuing from previous session: {session_id}")
        return self._resume(job.request, session_id)

    def _carry(self, session_id: str) -> None:
        self._continued = session_id
        tokens, cost_usd = session_usage(session_id, self.context.ledger.state)
        self._translator.account.carry(session_id, tokens, cost_usd)

    def _stands(self) -> Reentry:
        extensions = self.context.ledger.codon.extensions
        return Reentry(self._translator.session_id, self.job.program.name, self._session_turn, extensions)

    async def _go_on_waiting(self, left: Reentry) -> Command | None:
        """The turn that its watches ask for; None when they ask for none."""
        self._carry(left.session_id)
        self._translator.session_id, self._session_turn = left.session_id, left.turn
        self._initialize({})
        if left.extensions:
            self.context.ledger.move(
                "ExtensionCountUpdated", {"extensionCount": left.extensions}, codon_id=self.job.codon_id
            )
        self._started(left.session_id)
        self._waiting.since_ms = parse_stamp(left.since)
        wake = await self._waiting.awaited()
        return None if wake is None else self._woken(wake)

    def _resume(self, request: TurnRequest, session_id: str) -> Command:
        assert isinstance(self.job.program, Resumes)  # checked before the run
        return self.job.program.resume(replace(request, turn=self._session_turn), session_id)

    async def _run_turns(self, command: Command | None) -> Verdict:
        """Turns of one session, until nothing is left to say (design "How it runs" 6)."""
        if self.reentry is not None:
            command = await self._go_on_waiting(self.reentry)
        if command is None:
            return after_waiting(self.stop.reason)
        while True:
            self._end = end = await self._turn(command).run()
            verdict = self._verdict(end)
            is_full = verdict.status == "completed" and verdict.context_exceeded
            nudge = None if self.stop.reason or is_full else self._steering.next_prompt()
            if lost := self._steering.take_lost():
                self._tell.nudges_lost(lost)
            if nudge is not None:
                command = self._resume_with(nudge)
            elif self._may_be_woken(verdict) and (wake := await self._waiting.pending()) is not None:
                command = self._woken(wake)
            elif self._goes_on(verdict):
                command = self._extend()
            elif self._may_be_woken(verdict) and (wake := await self._waiting.awaited()) is not None:
                command = self._woken(wake)
            else:
                return self._verdict(end)  # it may have been stopped while it waited

    def _verdict(self, end: TurnEnd) -> Verdict:
        return decide(
            end.outcome,
            end.exit,
            self.stop.reason,
            idle_s=self.job.idle_s,
            ends_when_full=self.job.ends_when_full,
            exceeded=self._exceeded,
            trigger=self._steering.trigger,
        )

    def _may_be_woken(self, verdict: Verdict) -> bool:
        is_over = verdict.context_exceeded or verdict.budget_exceeded is not None
        return verdict.status == "completed" and not is_over and bool(self._translator.session_id)

    def _woken(self, wake: Wake) -> Command:
        command = self._again(wake.text)
        self._depth = wake.depth
        return command

    def _again(self, prompt: str) -> Command:
        """The next turn of the session; a prompt of its hank unless a watch asks for it."""
        self._session_turn, self._depth = self._session_turn + 1, 0
        return self._resume(replace(self.job.request, prompt=prompt), self._translator.session_id)

    def _resume_with(self, nudge: str) -> Command:
        """The turn that the watchdog ended was no failure: its session goes on with what it has to say."""
        self._session_turn += 1
        self._nudge_turns += 1
        self._translator.account.cut_short()
        if self._watched is not None:
            self._watched.watchdog.asked_anew()
        session_id = self._translator.session_id
        self._tell.nudge_turn(session_id, self._session_turn)
        return self._resume(replace(self.job.request, prompt=nudge), session_id)

    def _streamed(self, piece: Streamed) -> None:
        if self._watched is not None:
            self._watched.streamed(piece)

    def _tell_blind(self, error: Exception) -> None:
        self._tell.error(f"The watchdog no longer sees what the agent streams: {error}", "watchdog-failed")

    def _interrupted(self) -> None:
        if self._watched is not None:
            self._watched.watchdog.asked_anew()

    def _goes_on(self, verdict: Verdict) -> bool:
        """Whether the codon is prompted again (``exhaustWithPrompt``)."""
        if self.job.extension_prompt is None or verdict.status != "completed":
            return False
        if verdict.context_exceeded or verdict.budget_exceeded is not None:
            return False
        if not self._translator.session_id:
            self._tell.info(f"Codon {self.job.codon_id} is not extended: its session has no id", code="not-extended")
            return False
        return self.context.ledger.codon.extensions < self.job.codon.max_extensions

    def _extend(self) -> Command:
        job, ledger, account = self.job, self.context.ledger, self._translator.account
        assert job.extension_prompt is not None
        number = ledger.codon.extensions + 1
        command = self._again(job.extension_prompt)
        extended = CodonExtended(
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            codon_name=job.name,
            extension_number=number,
            exhaust_with_prompt=job.extension_prompt,
            cumulative_tokens=TokenCounts.model_validate(tokens_json(account.tokens)),
            cumulative_cost=account.whole_cost_usd,
        )
        self.context.stream.emit(extended)
        ledger.move("ExtensionCountUpdated", {"extensionCount": number}, codon_id=job.codon_id)
        return command

    def _turn(self, command: Command) -> Turn:
        job, context = self.job, self.context
        here = WatchTurn(job.session, self._depth, str(context.layout.root.resolve()))
        env = {**job.env, **command.env, **here.environment()}
        if job.codon.mcp:
            command = with_mcp(job.program, command, env, self._log_of("mcp").with_suffix(".json"))
            env = dict(command.env)
        return Turn(
            program=job.program,
            command=command,
            cwd=context.layout.agent_root,
            env=env,
            marker=context.ledger.marker,
            log_path=self._log_of(job.program.name),
            idle_s=job.idle_s,
            stream=context.stream,
            translator=self._translator,
            redactor=context.redactor,
            stop=self.stop,
            reins=self._steering.take(command),
            clock=context.clock,
            emit=self._emit,
            on_spawned=self._spawned,
            on_started=self._started,
            on_streamed=self._streamed,
            on_interrupted=self._interrupted,
        )

    def _log_of(self, program: str) -> Path:
        ledger = self.context.ledger
        return self.context.layout.agent_log(ledger.run_id, self.job.codon_id, ledger.codon.attempt, program)

    @property
    def _log_shown(self) -> str:
        return str(self._log_of(self.job.program.name).relative_to(self.context.layout.root))

    def _spawned(self, pid: int) -> None:
        self._initialize({"claudePid": pid})

    def _initialize(self, metadata: dict[str, Any]) -> None:
        metadata = {"agent": self.job.program.name, **metadata, "claudeLogPath": self._log_shown}
        if self._continued is not None:
            metadata["previousSessionId"] = self._continued
        if self.context.ledger.codon.status == "starting":
            self.context.ledger.move_codon("initializing", metadata)
            if (limit := self.allowance.seconds) is not None:
                self._time.start(limit, lambda: self._exceed(time_is_up(limit)))

    def _started(self, session_id: str) -> None:
        job, ledger = self.job, self.context.ledger
        if ledger.codon.status != "initializing":
            return  # told already, by an earlier line or turn of the same attempt
        self._pending_session = not session_id
        self._tell.info(f"Started codon {job.codon_id} with session ID: {session_id or 'not known yet'}")
        started = CodonStarted(
            codon_id=job.codon_id,
            base_codon_id=job.base_codon_id,
            codon_name=job.name,
            codon_description=job.description,
            session_id=session_id,
            previous_session_id=self._continued,
            start_time=ledger.codon.started_at,
            prompt_metadata=job.prompt_metadata,
        )
        ledger.move_codon("running", {"claudeSessionId": session_id} if session_id else None, started)

    def _emit(self, payloads: list[Payload]) -> None:
        if self._pending_session and self._translator.session_id:
            self._pending_session = False
            self._tell.info(f"Codon {self.job.codon_id} has session ID: {self._translator.session_id}")
        for payload in payloads:
            if isinstance(payload, TokenUsage) and not payload.is_final:
                self._count(payload)
            else:
                self._messages += isinstance(payload, AssistantAction)
                if isinstance(payload, ErrorEvent):
                    self._problem = payload.message
                self.context.stream.emit(payload)
                self._tracker.note(payload)

    def _count(self, usage: TokenUsage) -> None:
        ledger, codon_id = self.context.ledger, self.job.codon_id
        delta = {"costDelta": usage.total_cost, "tokensDelta": usage_json(usage)}
        if usage.total_cost is None and self._meter.counts_money:
            # A program that states its cost only at the end of a turn would never be ended in time.
            delta["costEstimate"] = estimate_usd(usage, self.job.request.model)
        ledger.move("CostsIncremented", delta, usage, codon_id=codon_id)
        if (exceeded := self._meter.add(usage, ledger.codon.known_cost_usd)) is not None:
            self._exceed(exceeded)

    def _exceed(self, exceeded: Exceeded) -> None:
        """End the agent, for the first limit that is reached."""
        if self._exceeded is None and self.stop.reason is None:
            self._exceeded = exceeded
            self._tell.budget_exceeded(exceeded)
            self.stop.request(StopReason.BUDGET)

    def _close_account(self) -> None:
        translator, ledger, codon_id = self._translator, self.context.ledger, self.job.codon_id
        self._emit(translator.finish())
        self.context.last_session.keep(translator)
        if self._messages:
            # Once, not with each message: resuming asks only whether there were any.
            ledger.move("AssistantMessageCountUpdated", {"newCount": self._messages}, codon_id=codon_id)
        final = {"finalCost": translator.account.whole_cost_usd, "finalTokens": tokens_json(translator.account.tokens)}
        ledger.move("CodonFinalCostSet", final, codon_id=codon_id)
        self._tell.left_out(translator.counts, self._log_shown)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the transition that ends it says of its agent (reference 3.2.14)."""
        data = self._waiting.metadata
        if self._translator.session_id:  # told again: it may have become known late, or have changed
            data["claudeSessionId"] = self._translator.session_id
        if self.reentry is not None:
            data["sessionTurn"] = self._session_turn
        if self._nudge_turns:
            data["nudgeTurns"] = self._nudge_turns
        if self._end is not None:
            data |= {"exitCode": self._end.exit.code, "resultMessageReceived": self._end.has_result}
        return data

    def _required_failure(self) -> Verdict:
        message = "; ".join(f"sentinel {failure.sentinel_id}: {failure.reason}" for failure in self.missing)
        reason = FailureReason(
            type="sentinel-load-failure",
            retriable=False,
            message=message,
            sentinel_refs=[failure.sentinel_id for failure in self.missing],
        )
        self._tell.error(f"A required sentinel could not be loaded: {message}", "SENTINEL_LOAD_FAILURE", fatal=True)
        return not_run(reason)

    def _spawn_failure(self, error: HankwatchError) -> Verdict:
        hint = f" ({error.hint})" if error.hint else ""
        self._tell.error(f"The agent could not be started: {error}{hint}", error.code, fatal=True)
        return not_run(FailureReason(type="unknown", retriable=False, message=str(error)))
