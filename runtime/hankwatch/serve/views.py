"""What runs look like over HTTP; keys are camelCase as in the journal."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from hankwatch.events.envelope import format_stamp
from hankwatch.pages.codons import CodonFacts
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fires import Fire, SentinelFacts
from hankwatch.pages.kept import Tally
from hankwatch.pages.problems import problems
from hankwatch.pages.words import Cost
from hankwatch.runner.inbox import Command, Text
from hankwatch.runner.orders import Order
from hankwatch.serve.shelf import Followed


class View(BaseModel):
    """Base of all."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class CostView(View):
    """Money in US dollars."""

    usd: float
    complete: bool
    """False: a part has no known price, and ``usd`` is a lower bound."""

    @classmethod
    def of(cls, cost: Cost) -> Self:
        return cls(usd=cost.known_usd, complete=not cost.unpriced)


class CodonView(View):
    """One attempt of a codon."""

    codon_id: str
    base_codon_id: str
    name: str
    attempt: int
    status: str
    started_at: str
    ended_at: str | None
    agent: str
    model: str
    session_id: str
    extensions: int
    reason: str
    ignored: bool
    earlier: bool
    """Done by an earlier run that this one goes on from."""
    input_tokens: int
    output_tokens: int
    cache_creation_tokens: int
    cache_read_tokens: int
    cost: CostView

    @classmethod
    def of(cls, facts: CodonFacts) -> Self:
        return cls(
            codon_id=facts.codon_id,
            base_codon_id=facts.base_id,
            name=facts.name,
            attempt=facts.attempt,
            status=facts.status,
            started_at=format_stamp(facts.began_ms),
            ended_at=None if facts.ended_ms is None else format_stamp(facts.ended_ms),
            agent=facts.agent,
            model=facts.model,
            session_id=facts.session_id,
            extensions=facts.extensions,
            reason=facts.reason,
            ignored=facts.ignored,
            earlier=facts.earlier,
            input_tokens=facts.tokens.input,
            output_tokens=facts.tokens.output,
            cache_creation_tokens=facts.tokens.cache_creation,
            cache_read_tokens=facts.tokens.cache_read,
            cost=CostView.of(facts.cost),
        )


class FireView(View):
    """One trigger of a sentinel, and what came of it."""

    codon_id: str
    trigger_number: int
    at: str
    cause: str
    event_count: int
    event_ids: list[str]
    outcome: str
    ended_at: str | None
    text: str
    """What the model said; cut where ``omittedChars`` says so."""
    omitted_chars: int
    error: str
    cost: CostView

    @classmethod
    def of(cls, fire: Fire) -> Self:
        return cls(
            codon_id=fire.codon_id,
            trigger_number=fire.number,
            at=format_stamp(fire.at_ms),
            cause=fire.cause,
            event_count=fire.event_count,
            event_ids=list(fire.event_ids),
            outcome=fire.outcome,
            ended_at=None if fire.ended_ms is None else format_stamp(fire.ended_ms),
            text=fire.content.text,
            omitted_chars=fire.content.left_out,
            error=fire.error,
            cost=CostView.of(fire.cost),
        )


class SentinelView(View):
    """What one sentinel did in a run."""

    sentinel_id: str
    model: str
    trigger_type: str
    strategy: str
    report: str
    loaded: bool
    fired: int
    answered: int
    failed: int
    dropped_triggers: int
    dropped_events: int
    abandoned_triggers: int
    calls: int
    cost: CostView
    fires: list[FireView]
    """The first and the latest; ``fired`` counts all."""

    @classmethod
    def of(cls, facts: SentinelFacts) -> Self:
        return cls(
            sentinel_id=facts.id,
            model=facts.model,
            trigger_type=facts.trigger_type,
            strategy=facts.strategy,
            report=facts.report,
            loaded=facts.loaded,
            fired=facts.fired,
            answered=facts.answered,
            failed=facts.failed,
            dropped_triggers=facts.dropped_triggers,
            dropped_events=facts.dropped_events,
            abandoned_triggers=facts.abandoned,
            calls=facts.calls,
            cost=CostView.of(facts.cost),
            fires=[FireView.of(fire) for fire in facts.fires],
        )


class ProblemView(View):
    """Something worth a look."""

    severity: str
    title: str
    text: str


class RunView(View):
    """A run in a list."""

    execution: str
    """Its directory's name, which names its latest run too."""
    run: str | None
    hank: str | None
    outcome: str
    """``running``, ``completed``, ``failed``, ``crashed``, ``recorded``, or ``unreadable``."""
    reason: str
    started_at: str | None
    duration_ms: int
    events: int
    cursor: int
    """How far the journal was read; where a live stream can begin."""
    agent_cost: CostView
    sentinel_cost: CostView
    fired: int
    failed_fires: int
    dropped_triggers: int
    nudges: int
    interrupts: int
    bad_lines: int

    @classmethod
    def of(cls, followed: Followed, facts: RunFacts, **more: Any) -> Self:
        return cls(
            execution=followed.execution.name,
            run=facts.run_id or None,
            hank=hank_of(followed),
            outcome="unreadable" if followed.unreadable else facts.status,
            reason=followed.unreadable or facts.reason,
            started_at=format_stamp(facts.began_ms) if facts.event_count else None,
            duration_ms=max(0, facts.ended_ms - facts.began_ms),
            events=facts.event_count,
            cursor=followed.cursor,
            agent_cost=CostView.of(facts.agent_cost),
            sentinel_cost=CostView.of(facts.sentinel_cost),
            fired=facts.fired,
            failed_fires=facts.failed_fires,
            dropped_triggers=facts.dropped,
            nudges=facts.nudges,
            interrupts=facts.interrupts,
            bad_lines=facts.bad_lines,
            **more,
        )


class RunDetail(RunView):
    """A run with what its page says of it."""

    continues: str | None
    """The run it goes on from."""
    other_runs: int
    codons: list[CodonView]
    types: dict[str, int]
    tools: dict[str, int]
    files: dict[str, int]
    """Changes by path; the most frequent ones."""
    problems: list[ProblemView]

    @classmethod
    def of(cls, followed: Followed, facts: RunFacts, **_: Any) -> Self:
        return super().of(
            followed,
            facts,
            continues=facts.continues or None,
            other_runs=facts.other_runs,
            codons=[CodonView.of(codon) for codon in facts.shown_codons],
            types=_counts(facts.types),
            tools=_counts(facts.tools),
            files=_counts(facts.files),
            problems=[ProblemView(severity=p.severity, title=p.title, text=p.text) for p in problems(facts)],
        )


class EventView(View):
    """One event of the journal. Its ``data`` is whatever the agent's world said: text, never markup."""

    cursor: int
    id: str
    timestamp: str
    type: str
    data: dict[str, Any]


class EventPage(View):
    """Some events in journal order."""

    events: list[EventView]
    next: int
    """The cursor to go on behind."""
    more: bool
    """Whether there is more behind ``next`` already."""


class ReportView(View):
    """What a sentinel has written into one file, by the journal."""

    name: str
    """The file, relative to the execution directory."""
    sentinel_id: str
    entries: int
    size_bytes: int


class ReportText(ReportView):
    """A report with its text."""

    text: str
    omitted_bytes: int
    """Of its beginning; the end is shown."""


class _Asked(View):
    model_config = ConfigDict(extra="forbid")

    wait_s: Annotated[float, Field(ge=0, le=30)] = 0.0
    """How long to wait for the run's answer, at most 30."""


class OrderRequest(_Asked):
    """Something to ask a live run for."""

    command: Literal[Order.NEXT, Order.SKIP, Order.STOP, Order.FORCE_STOP, Order.CHECKPOINTS]


class RollbackRequest(_Asked):
    """Let a waiting run go back."""

    command: Literal[Order.ROLLBACK]
    target: Text
    """What it goes back to: a checkpoint's SHA, ``CODON``, ``CODON:start`` or ``last-success``."""
    go_on: bool = False
    """Start the next codon at once instead of waiting again."""


CommandRequest = Annotated[OrderRequest | RollbackRequest, Field(discriminator="command")]


class CommandView(View):
    """A command as it was written for its run, and the run's answer if it was waited for."""

    id: str
    run: str
    codon: str | None
    attempt: int | None
    command: Order
    state: Literal["sent", "done"]
    message: str | None
    """What the run says."""

    @classmethod
    def of(cls, command: Command, state: Literal["sent", "done"], message: str | None) -> Self:
        return cls(
            id=command.id,
            run=command.run,
            codon=command.codon,
            attempt=command.attempt,
            command=command.command,
            state=state,
            message=message,
        )


class SessionView(View):
    """A session of a run's agent, and the watches that are armed in it."""

    name: str
    execution: str | None
    """None: only watches know of it."""
    run: str | None
    state: str
    """``idle``, ``working``, ``ended``, or ``unknown``."""
    active_watches: int
    proposed_watches: int


def _counts(tally: Tally) -> dict[str, int]:
    return {share.name: share.count for share in tally}


def hank_of(followed: Followed) -> str | None:
    """What people call it: the hank's folder or file, without where it lies."""
    path = str(followed.execution.meta.get("hankPath") or "")
    parts = path.rstrip("/").split("/")
    name = parts[-2] if parts[-1] == "hank.json" and len(parts) > 1 else parts[-1]
    return name or None
