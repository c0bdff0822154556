"""What a run has done so far: a fold of its ``state.transition`` events (design "How it runs" 7).

The live run and every reader of a journal use the same pure reducer, so what resumes, reports and pages
see is what the run itself saw.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hankwatch.agents.limits import MAX_COST_USD, MAX_TOKENS
from hankwatch.agents.signals import Tokens
from hankwatch.events.codec import parse_stamp
from hankwatch.events.envelope import Event
from hankwatch.events.run import TokenUsage
from hankwatch.events.shapes import CodonStatus

FINAL: frozenset[str] = frozenset({"completed", "failed", "skipped"})
_NEXT: Mapping[str, frozenset[str]] = {
    "preparing": frozenset({"starting", "failed", "skipped"}),
    "starting": frozenset({"initializing", "failed", "skipped"}),
    "initializing": frozenset({"running", "failed", "skipped"}),
    "running": frozenset({"completing-sentinels", *FINAL}),
    "completing-sentinels": FINAL,
}

_CHECKPOINT_KEYS: Mapping[str, str] = {
    "rig-setup": "rigSetupCheckpoint",
    "completed": "completionCheckpoint",
    "error": "errorCheckpoint",
    "skipped": "skipCheckpoint",
}
_END_CHECKPOINTS = ("completed", "skipped", "error")

RunStatus = Literal["running", "completed", "failed", "crashed"]
_RUN_ENDS: Mapping[str, RunStatus] = {"RunCompleted": "completed", "RunFailed": "failed", "RunCrashed": "crashed"}


@dataclass(frozen=True, slots=True)
class CodonRecord:
    """One attempt of one codon."""

    codon_id: str
    """Runtime id: ``<id>#<n>`` in loops."""
    attempt: int
    """1-based within its run."""
    status: CodonStatus
    started_at: str
    """Stamp of its CodonStarted."""
    ended_at: str | None = None
    name: str | None = None
    base_codon_id: str | None = None
    loop: Mapping[str, Any] | None = None
    """The contract's ``loopContext``; None outside of loops."""
    agent: str | None = None
    """The program that ran it; None before it was started."""
    session_id: str | None = None
    """The session's id as last told."""
    previous_session_id: str | None = None
    """The session it continued."""
    cost_usd: float | None = 0.0
    """Agent cost; None once any part of it is unknown."""
    stated_cost_usd: float = 0.0
    """The part of it that is known."""
    estimated_cost_usd: float = 0.0
    """By the registry: what its program has not stated yet."""
    agent_began_at: str | None = None
    agent_ended_at: str | None = None
    """The last sign of it, while it runs."""
    budget: Mapping[str, Any] = field(default_factory=dict)
    """What it was allowed, under the names of the hank's budgets."""
    tokens: Tokens = field(default_factory=Tokens)
    assistant_messages: int = 0
    extensions: int = 0
    """How often it was prompted again in the same session."""
    wake_turns: int = 0
    """Turns that watches asked for."""
    waited_ms: int = 0
    """How long it waited for watches between its turns, which its time budget does not count."""
    nudge_turns: int = 0
    """Turns of its session that began with a word of the watchdog."""
    session_turn: int | None = None
    """Number of its session's latest turn, where the attempt was re-entered and did not begin all of them itself."""
    verdict: Mapping[str, Any] = field(default_factory=dict)
    """What the attempt comes to (``Verdict.as_json``); known from the agent's end on."""
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    """Status (``rig-setup``, ``completed`` …) to the sha of the checkpoint made for it."""
    sentinels: tuple[Mapping[str, Any], ...] = ()
    """SentinelState of each sentinel, as last captured (reference 3.6)."""

    @property
    def final(self) -> bool:
        """It has ended."""
        return self.status in FINAL

    @property
    def known_cost_usd(self) -> float:
        """What counts against budgets."""
        return self.stated_cost_usd + self.estimated_cost_usd

    @property
    def failure_reason(self) -> Mapping[str, Any] | None:
        """Why it failed."""
        return self.verdict.get("failureReason") if self.final else None

    @property
    def checkpoint_sha(self) -> str:
        """Of the workspace as the attempt left it; empty without one."""
        return next((self.checkpoints[name] for name in _END_CHECKPOINTS if name in self.checkpoints), "")

    @property
    def _duration_ms(self) -> int:
        began, ended = parse_stamp(self.started_at), parse_stamp(self.ended_at)
        return 0 if began is None or ended is None else max(0, ended - began)

    def as_json(self) -> dict[str, Any]:
        """The contract's CodonExecution, as snapshots carry it."""
        data: dict[str, Any] = {
            "codonId": self.codon_id,
            "status": self.status,
            "startTime": self.started_at,
            "tokenUsage": tokens_json(self.tokens),
            "cost": self.cost_usd,
        }
        optional = {
            "codonName": self.name,
            "baseCodonId": self.base_codon_id,
            "loopContext": self.loop,
            "endTime": self.ended_at,
            "sessionId": self.session_id,
            "previousSessionId": self.previous_session_id,
            "assistantMessageCount": self.assistant_messages,
            "extensionCount": self.extensions,
            **{key: self.checkpoints.get(status) for status, key in _CHECKPOINT_KEYS.items()},
        }
        data |= {name: value for name, value in optional.items() if value}
        if self.final:
            data |= {**self.verdict, "attempt": self.attempt, "duration": self._duration_ms}
        if self.sentinels:
            data["sentinels"] = {"executed" if self.final else "loaded": [dict(s) for s in self.sentinels]}
        return data


@dataclass(frozen=True, slots=True)
class Source:
    """What a run goes on from (reference 3.6, ``startingConditions``)."""

    run_id: str
    after_codon: str | None
    """Runtime id of the last codon that still counts; None when all is done again."""
    checkpoint_sha: str | None = None
    """Of the workspace it goes on with; None without one."""
    left_run: str | None = None
    """The run that a rollback left for it, whose spending counts on; None without a rollback."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One RunStarted … end of an execution, by one process."""

    run_id: str
    started_at: str
    status: RunStatus = "running"
    ended_at: str | None = None
    codons: tuple[CodonRecord, ...] = ()
    """In the order they started."""
    source: Source | None = None
    """Where it goes on from; None when it began afresh."""
    only_wakes: bool = False
    """It ran the turns that watches asked for, and no codon of the hank: of that its end says nothing."""

    @property
    def current(self) -> CodonRecord | None:
        """The codon that has not ended yet."""
        return self.codons[-1] if self.codons and not self.codons[-1].final else None

    @property
    def cost_usd(self) -> float | None:
        """Agent cost of all attempts; None when a part is unknown."""
        return total_cost(codon.cost_usd for codon in self.codons)


@dataclass(frozen=True, slots=True)
class RunState:
    """All runs of an execution, oldest first."""

    runs: tuple[RunRecord, ...] = ()

    @property
    def current(self) -> RunRecord | None:
        """The latest run."""
        return self.runs[-1] if self.runs else None

    @property
    def of_hank(self) -> RunRecord | None:
        """The latest run that carried codons of the hank out; of an execution without one, the latest."""
        return next((run for run in reversed(self.runs) if not run.only_wakes), self.current)

    @property
    def chain(self) -> tuple[RunRecord, ...]:
        """The latest run and those it goes on from, oldest first."""
        chain: list[RunRecord] = []
        for run in reversed(self.runs):
            if not chain or (chain[-1].source and chain[-1].source.run_id == run.run_id):
                chain.append(run)
        return tuple(reversed(chain))

    @property
    def attempts(self) -> tuple[CodonRecord, ...]:
        """Every attempt on the way to the latest run, oldest first, whether or not it still counts."""
        runs: list[RunRecord] = []
        for run in reversed(self.runs):
            source = runs[-1].source if runs else None
            if not runs or (source and run.run_id == (source.left_run or source.run_id)):
                runs.append(run)
        return tuple(record for run in reversed(runs) for record in run.codons)

    @property
    def thread(self) -> tuple[CodonRecord, ...]:
        """What was done and still counts for the latest run, oldest first; its own codons included."""
        records: list[CodonRecord] = []
        for run in self.chain:
            if run.source is not None:
                kept = [n for n, record in enumerate(records, 1) if record.codon_id == run.source.after_codon]
                del records[kept[-1] if kept else 0 :]
            records += run.codons
        return tuple(records)

    def resulting_state(self) -> dict[str, Any]:
        """The summary each ``state.transition`` carries."""
        run = self.current
        live = run is not None and run.status == "running"
        return {
            "currentRunId": run.run_id if run and live else None,
            "runCount": len(self.runs),
            "totalCost": total_cost(r.cost_usd for r in self.runs),
            "currentRunCost": run.cost_usd if run else 0.0,
        }


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of the state machine: the reducer's only input."""

    type: str
    """One of the contract's transition types."""
    data: Mapping[str, Any]
    at: str
    """Stamp of the event that carries it."""


def tokens_json(tokens: Tokens) -> dict[str, int]:
    """The contract's TokenUsage."""
    return {
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "cacheCreationTokens": tokens.cache_creation,
        "cacheReadTokens": tokens.cache_read,
    }


def usage_json(usage: TokenUsage) -> dict[str, int]:
    """The contract's TokenUsage of an event."""
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheCreationTokens": usage.cache_creation_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
    }


def _tokens(data: Mapping[str, Any]) -> Tokens:
    names = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    return Tokens(*(int(_number(data.get(name), MAX_TOKENS) or 0) for name in names))


def _number(value: Any, limit: float) -> float | None:
    """What a transition states, or None: a foreign journal can hold anything."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= limit else None


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum, or None when any part is unknown or they are too large to have one."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total if math.isfinite(total) else None


def latest(records: Iterable[CodonRecord]) -> dict[str, CodonRecord]:
    """The last record of each codon, by its runtime id."""
    return {record.codon_id: record for record in records}


def reduce(state: RunState, step: Transition) -> RunState:
    """The state after ``step``; what does not apply (an older journal, a foreign type) changes nothing."""
    match step.type:
        case "RunStarted":
            source, only_wakes = _source(step.data), _is_for_wakes(step.data)
            record = RunRecord(str(step.data.get("runId", "")), step.at, source=source, only_wakes=only_wakes)
            return RunState((*state.runs, record))
        case "RunCompleted" | "RunFailed" | "RunCrashed":
            return _with_run(state, step, lambda run: replace(run, status=_RUN_ENDS[step.type], ended_at=step.at))
        case "CodonStarted":
            return _with_run(state, step, lambda run: _start_codon(run, step))
        case _:
            return _with_run(state, step, lambda run: _with_codon(run, step))


def fold(events: Iterable[Event], state: RunState | None = None) -> RunState:
    """The state that the ``state.transition`` events among ``events`` lead to."""
    state = state or RunState()
    for event in events:
        if event.type == "state.transition":
            inner = event.data.get("transition")
            if isinstance(inner, dict) and isinstance(inner.get("data"), dict):
                state = reduce(state, Transition(str(inner.get("type")), inner["data"], event.timestamp))
    return state


def _with_run(state: RunState, step: Transition, change: Callable[[RunRecord], RunRecord]) -> RunState:
    for index in reversed(range(len(state.runs))):
        if state.runs[index].run_id == step.data.get("runId"):
            runs = list(state.runs)
            runs[index] = change(runs[index])
            return RunState(tuple(runs))
    return state


def _source(data: Mapping[str, Any]) -> Source | None:
    conditions = data.get("startingConditions")
    source = conditions.get("source") if isinstance(conditions, Mapping) else None
    if not isinstance(source, Mapping):
        return None
    after = source.get("afterCodon")
    sha = source.get("checkpointSha")
    left = conditions.get("leftRun") if isinstance(conditions, Mapping) else None
    return Source(
        str(source.get("runId", "")),
        str(after) if after is not None else None,
        str(sha) if sha else None,
        str(left) if left else None,
    )


def _is_for_wakes(data: Mapping[str, Any]) -> bool:
    conditions = data.get("startingConditions")
    return isinstance(conditions, Mapping) and conditions.get("onlyWakes") is True


def _start_codon(run: RunRecord, step: Transition) -> RunRecord:
    codon_id = str(step.data.get("codonId", ""))
    attempt = 1 + sum(c.codon_id == codon_id for c in run.codons)
    record = CodonRecord(
        codon_id,
        attempt,
        "preparing",
        step.at,
        name=step.data.get("codonName"),
        base_codon_id=step.data.get("baseCodonId"),
        loop=step.data.get("loopContext"),
        budget=step.data.get("budget") or {},
    )
    return replace(run, codons=(*run.codons, record))


def _with_codon(run: RunRecord, step: Transition) -> RunRecord:
    for index in reversed(range(len(run.codons))):
        if run.codons[index].codon_id == step.data.get("codonId"):
            codons = list(run.codons)
            codons[index] = _reduce_codon(codons[index], step)
            return replace(run, codons=tuple(codons))
    return run


def _reduce_codon(codon: CodonRecord, step: Transition) -> CodonRecord:
    data = step.data
    # A checkpoint that tells the verdict is made after the agent's end, and so is what follows it.
    if codon.status in {"initializing", "running"} and not codon.verdict and step.type != "CheckpointCreated":
        codon = replace(codon, agent_ended_at=step.at)
    match step.type:
        case "CodonTransitioned":
            codon = _move_codon(codon, data, step.at)
        case "CostsIncremented":
            delta = _number(data.get("costDelta"), MAX_COST_USD)
            estimate = _number(data.get("costEstimate"), MAX_COST_USD) or 0.0
            codon = replace(
                codon,
                tokens=codon.tokens + _tokens(data.get("tokensDelta") or {}),
                cost_usd=total_cost((codon.cost_usd, delta)),
                stated_cost_usd=codon.stated_cost_usd + (delta or 0.0),
                # What is stated late covers what came before.
                estimated_cost_usd=codon.estimated_cost_usd + estimate if delta is None else 0.0,
            )
        case "CodonFinalCostSet":
            final = _number(data.get("finalCost"), MAX_COST_USD)
            tokens = _tokens(data.get("finalTokens") or {})
            codon = replace(codon, tokens=tokens, cost_usd=final)
            if final is not None:
                codon = replace(codon, stated_cost_usd=final, estimated_cost_usd=0.0)
        case "AssistantMessageCountUpdated":
            codon = replace(codon, assistant_messages=int(_number(data.get("newCount"), MAX_TOKENS) or 0))
        case "ExtensionCountUpdated":
            codon = replace(codon, extensions=int(_number(data.get("extensionCount"), MAX_TOKENS) or 0))
        case "CheckpointCreated":
            status, sha = data.get("status", data.get("checkpointType")), data.get("sha")
            codon = replace(
                codon,
                checkpoints={**codon.checkpoints, str(status): str(sha)},
                verdict=codon.verdict or data.get("verdict") or {},
            )
        case "SentinelStatesUpdated":
            codon = replace(codon, sentinels=tuple(data.get("sentinelStates") or ()))
        case _:
            pass
    return codon


def may_move(status: str, target: object) -> bool:
    """Whether the state machine leads from one codon status to another (reference 3.6)."""
    return isinstance(target, str) and target in _NEXT.get(status, frozenset())


def _move_codon(codon: CodonRecord, data: Mapping[str, Any], at: str) -> CodonRecord:
    target: Any = data.get("to")
    if not may_move(codon.status, target):
        return codon
    metadata = data.get("metadata") or {}
    return replace(
        codon,
        status=target,
        ended_at=at if target in FINAL else None,
        agent=metadata.get("agent", codon.agent),
        agent_began_at=at if target == "initializing" else codon.agent_began_at,
        session_id=metadata.get("claudeSessionId") or codon.session_id,
        previous_session_id=metadata.get("previousSessionId", codon.previous_session_id),
        wake_turns=int(_number(metadata.get("wakeTurns"), MAX_TOKENS) or codon.wake_turns),
        waited_ms=int(_number(metadata.get("waitedMs"), MAX_TOKENS) or codon.waited_ms),
        nudge_turns=int(_number(metadata.get("nudgeTurns"), MAX_TOKENS) or codon.nudge_turns),
        session_turn=int(_number(metadata.get("sessionTurn"), MAX_TOKENS) or 0) or codon.session_turn,
        verdict=metadata if target in FINAL else metadata.get("verdict", {}),
    )
