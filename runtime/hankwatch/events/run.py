"""Payloads of server-state events: codons, tokens, checkpoints, rollback, archive, loops, budgets."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from hankwatch.events.file_tree import FileNode
from hankwatch.events.payload import CodonPayload, Count, JsonObject, Maybe, Milliseconds, Payload, Shape, Usd
from hankwatch.events.shapes import (
    BudgetExceeded,
    CheckpointType,
    CodonExecution,
    DirectoryError,
    ExitStatus,
    FailureReason,
    PathError,
    TokenCounts,
)

TransitionType = Literal[
    "RunStarted",
    "RunCompleted",
    "RunFailed",
    "RunCrashed",
    "CodonStarted",
    "CodonTransitioned",
    "CostsUpdated",
    "CostsIncremented",
    "AssistantMessageCountUpdated",
    "ExtensionCountUpdated",
    "CheckpointCreated",
    "InitialCheckpointSet",
    "CodonFinalCostSet",
    "SentinelStatesUpdated",
]


class PromptMetadata(Shape):
    """Front matter of a codon's first prompt file."""

    name: Maybe[str] = None
    description: Maybe[str] = None
    tags: Maybe[list[str]] = None
    version: Maybe[str] = None
    author: Maybe[str] = None


class CodonStarted(CodonPayload):
    """The agent of a codon said its first well-formed line."""

    TYPE: ClassVar[str] = "codon.started"
    codon_name: str
    codon_description: Maybe[str] = None
    session_id: str
    """The agent's session; empty while it is not known."""
    previous_session_id: Maybe[str] = None
    start_time: str
    """ISO-8601: when the codon was begun, rig included; earlier than the event."""
    prompt_metadata: Maybe[PromptMetadata] = None


class CodonCompleted(CodonPayload):
    """One attempt of a codon ended, however it ended; exactly one per attempt."""

    TYPE: ClassVar[str] = "codon.completed"
    success: bool
    """Whether its final status is ``completed``."""
    cost: Usd | None
    """Agent and sentinel cost of the attempt known so far."""
    duration: Milliseconds
    """From ``codon.started.startTime``."""
    exit_status: ExitStatus
    failure_reason: Maybe[FailureReason] = None
    failure_ignored: Maybe[Literal[True]] = None
    """The run went on all the same (``onFailure: ignore``)."""
    budget_exceeded: Maybe[BudgetExceeded] = None


class CodonExtended(CodonPayload):
    """A codon that ended its turn well is prompted again in the same session."""

    TYPE: ClassVar[str] = "codon.extended"
    codon_name: str
    extension_number: int = Field(ge=1)
    exhaust_with_prompt: str
    """The prompt that is sent again."""
    cumulative_tokens: TokenCounts
    """Of the codon so far; so is the cost."""
    cumulative_cost: Usd | None


class RecentFileAccess(Shape):
    """The file that was touched last."""

    path: str
    content: Maybe[str] = None
    timestamp: str


class StateSnapshot(Payload):
    """Where the run stands, for those that join late."""

    TYPE: ClassVar[str] = "state.snapshot"
    current_codon: Maybe[CodonExecution] = None
    completed_codons: list[CodonExecution]
    """All terminal codons, newest first."""
    file_tree: list[FileNode]
    total_cost: Usd | None
    total_time: Milliseconds
    """Since the process started."""
    recent_file_access: Maybe[RecentFileAccess] = None
    is_rolling_back: bool


class Transition(Shape):
    """The reducer's input."""

    type: TransitionType
    data: JsonObject


class ResultingState(Shape):
    """A digest of the state after a transition."""

    current_run_id: str | None
    run_count: Count
    total_cost: Usd | None
    current_run_cost: Usd | None


class StateTransition(Payload):
    """The run's state changed; the state is the fold of these."""

    TYPE: ClassVar[str] = "state.transition"
    transition_type: TransitionType
    run_id: Maybe[str] = None
    codon_id: Maybe[str] = None
    base_codon_id: Maybe[str] = None
    transition: Transition
    resulting_state: ResultingState


class ServerIdle(Payload):
    """The run waits for a command."""

    TYPE: ClassVar[str] = "server.idle"
    reason: Literal["startup", "codon-completed", "all-codons-completed", "rollback-completed"]
    message: str


class ModelUsage(Shape):
    """Tokens and cost of one model within a codon."""

    input_tokens: Count
    output_tokens: Count
    cache_read_input_tokens: Maybe[Count] = None
    cache_creation_input_tokens: Maybe[Count] = None
    cost_usd: Usd | None = Field(alias="costUSD")


class TokenUsage(CodonPayload):
    """Tokens of one API message, or the totals of the codon when ``is_final``."""

    TYPE: ClassVar[str] = "token.usage"
    input_tokens: Count
    output_tokens: Count
    cache_creation_tokens: Count
    cache_read_tokens: Count
    total_cost: Usd | None
    """Of this message; on the final event, of the codon."""
    model_id: Maybe[str] = None
    model_usage: Maybe[dict[str, ModelUsage]] = None
    is_final: Maybe[bool] = None
    """True on the codon's last one, which carries totals; the others add up to it."""


class Info(Payload):
    """Something worth knowing."""

    TYPE: ClassVar[str] = "info"
    message: str
    """For people; programs look at ``code``."""
    code: Maybe[str] = None
    """Stable, kebab-case, for those that act on it."""
    details: Maybe[dict[str, Any] | list[Any]] = None
    command_id: Maybe[str] = None
    """The command this answers."""


class ErrorEvent(Payload):
    """Something went wrong."""

    TYPE: ClassVar[str] = "error"
    message: str
    codon: Maybe[str] = None
    """Runtime id of the codon it concerns."""
    base_codon_id: Maybe[str] = None
    fatal: bool
    """Whether the run ends because of it."""
    severity: Maybe[Literal["fatal", "codon", "operation", "warning"]] = None
    context: Maybe[str | dict[str, Any]] = None
    code: Maybe[str] = None
    command_id: Maybe[str] = None
    """The command this answers."""


class Checkpoint(Shape):
    """One checkpoint of a run."""

    codon_id: str
    codon_name: str
    checkpoint_type: CheckpointType
    sha: str
    status: str
    """As in the commit's subject."""
    timestamp: str


class CheckpointList(Payload):
    """The checkpoints of a run, as asked for."""

    TYPE: ClassVar[str] = "checkpoint.list"
    run_id: str
    checkpoints: list[Checkpoint]
    current_branch: str


class RollbackStarted(Payload):
    """A rollback began."""

    TYPE: ClassVar[str] = "rollback.started"
    from_run: str
    from_codon: str
    to_codon: str
    to_checkpoint: str
    checkpoint_type: str
    codons_to_process: list[str]


class RollbackProgress(Payload):
    """One step of a rollback."""

    TYPE: ClassVar[str] = "rollback.progress"
    current_step: Count
    total_steps: Count
    message: str


class RollbackCodonCheckpoint(CodonPayload):
    """A codon's checkpoint was checked out."""

    TYPE: ClassVar[str] = "rollback.codonCheckpoint"
    codon_name: str
    checkpoint: str
    checkpoint_type: str
    message: str


class RollbackRigCleanup(CodonPayload):
    """What a codon's rig had made is being removed."""

    TYPE: ClassVar[str] = "rollback.rigCleanup"
    codon_name: str
    directories: list[str]
    status: Literal["started", "completed", "failed", "partial"]
    successful_cleanups: Maybe[list[str]] = None
    failed_cleanups: Maybe[list[DirectoryError]] = None
    error: Maybe[str] = None


class RollbackArchiveRestore(CodonPayload):
    """Archived files were put back; ``codon_id`` holds the target's SHA, as in 0.10."""

    TYPE: ClassVar[str] = "rollback.archiveRestore"
    restored_paths: list[str]
    failed_paths: Maybe[list[PathError]] = None
    status: Literal["completed", "partial", "failed"]


class RollbackCompleted(CodonPayload):
    """A rollback ended; work continues in a new run."""

    TYPE: ClassVar[str] = "rollback.completed"
    from_run: str
    to_run: str
    checkpoint: str
    codon_name: str
    checkpoint_type: str
    auto_restart: bool


class ArchiveCompleted(CodonPayload):
    """A codon's files were moved to the archive."""

    TYPE: ClassVar[str] = "archive.completed"
    archived_paths: list[str]


class ArchivePartial(CodonPayload):
    """Some of a codon's files could not be moved to the archive."""

    TYPE: ClassVar[str] = "archive.partial"
    archived_paths: list[str]
    failed_paths: list[PathError]


class LoopIterationCompleted(Payload):
    """One pass over a loop's codons ended."""

    TYPE: ClassVar[str] = "loop.iteration.completed"
    loop_id: str
    iteration: Count
    """0-based."""
    duration_ms: Milliseconds
    cost_usd: Usd | None
    tokens_used: Count
    """Input and output together."""
    is_final: bool
    termination_reason: Maybe[Literal["iteration_limit", "context_exceeded", "sentinel_skip", "failure"]] = None


class BudgetCeiling(Shape):
    """The run's own limits."""

    max_dollars: Maybe[float] = None
    max_time_seconds: Maybe[float] = None


class BudgetLimits(Shape):
    """What a codon was allowed."""

    max_dollars: Maybe[float] = None
    max_time_seconds: Maybe[float] = None
    max_output_tokens: Maybe[int] = None


class BudgetActual(Shape):
    """What a codon used."""

    dollars: Usd | None
    time_seconds: float
    output_tokens: Count


class LoopContext(Shape):
    """Where in a loop a codon stood."""

    loop_id: str
    iteration: Count
    codon_index_in_loop: Count


class BudgetRow(Shape):
    """One codon's line of the budget table."""

    codon_id: str
    loop_context: Maybe[LoopContext] = None
    status: Literal["completed", "failed", "skipped", "exceeded", "running"]
    budget: BudgetLimits
    actual: BudgetActual


class BudgetTotals(Shape):
    """The budget table's last line."""

    budget_dollars: Maybe[float] = None
    actual_dollars: Usd | None
    actual_time_seconds: float


class BudgetSummary(Payload):
    """What was allowed and what was used, at the end of a run with limits."""

    TYPE: ClassVar[str] = "budget.summary"
    ceiling: BudgetCeiling
    allocation: Literal["shared", "proportional", "proportional-strict"]
    rows: list[BudgetRow]
    totals: BudgetTotals


PAYLOADS: tuple[type[Payload], ...] = (
    CodonStarted,
    CodonCompleted,
    CodonExtended,
    StateSnapshot,
    StateTransition,
    ServerIdle,
    TokenUsage,
    Info,
    ErrorEvent,
    CheckpointList,
    RollbackStarted,
    RollbackProgress,
    RollbackCodonCheckpoint,
    RollbackRigCleanup,
    RollbackArchiveRestore,
    RollbackCompleted,
    ArchiveCompleted,
    ArchivePartial,
    LoopIterationCompleted,
    BudgetSummary,
)
"""Every server-state type; all of them are open."""
