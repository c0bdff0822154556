"""Shapes that several payloads share (the 0.10 contract, section "shared shapes")."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hankwatch.events.file_tree import FileNode as FileNode  # noqa: PLC0414 - one of the shapes, needed by itself
from hankwatch.events.payload import Count, Maybe, Milliseconds, Shape, Usd

CodonStatus = Literal[
    "preparing", "starting", "initializing", "running", "completing-sentinels", "completed", "failed", "skipped"
]
FailureType = Literal["timeout", "rate-limit", "api-error", "sentinel-load-failure", "unknown"]
BudgetCurrency = Literal["cost", "outputTokens", "contextTokens", "duration"]
CheckpointType = Literal["rig-setup", "completed", "error", "skipped"]


class ExitSuccess(Shape):
    """The agent's work ended well."""

    type: Literal["success"] = "success"


class ExitError(Shape):
    """The agent's work failed."""

    type: Literal["error"] = "error"
    code: int
    """Exit code; -1 where there was none."""


class ExitKilled(Shape):
    """A signal ended the agent."""

    type: Literal["killed"] = "killed"
    signal: str
    """Its name, ``SIGTERM``."""


ExitStatus = Annotated[ExitSuccess | ExitError | ExitKilled, Field(discriminator="type")]


class FailureReason(Shape):
    """Why a codon failed, and whether trying again can help."""

    type: FailureType
    retriable: bool
    """Whether trying again can help."""
    message: Maybe[str] = None
    sentinel_refs: Maybe[list[str]] = None
    """The sentinels that could not be loaded; only with ``sentinel-load-failure``."""
    retry_after_ms: Maybe[Milliseconds] = None


class BudgetExceeded(Shape):
    """The limit that was reached."""

    currency: BudgetCurrency
    limit: float
    """In USD, tokens, or seconds, as the currency says."""
    used: float
    """In the same unit; at least ``limit``."""


class TokenCounts(Shape):
    """Tokens by kind."""

    input_tokens: Count
    output_tokens: Count
    cache_creation_tokens: Count
    cache_read_tokens: Count


class CodonExecution(Shape):
    """A codon's state record; runtimes add their own keys, so it is open."""

    model_config = ConfigDict(extra="allow")

    codon_id: str
    status: CodonStatus
    start_time: str
    codon_name: Maybe[str] = None
    base_codon_id: Maybe[str] = None
    description: Maybe[str] = None
    end_time: Maybe[str] = None
    session_id: Maybe[str] = None
    previous_session_id: Maybe[str] = None
    claude_session_id: Maybe[str] = None
    token_usage: Maybe[TokenCounts] = None
    cost: Maybe[Usd] = None
    final_cost: Maybe[Usd] = None
    partial_cost: Maybe[Usd] = None
    current_cost: Maybe[Usd] = None
    duration: Maybe[Milliseconds] = None
    exit_status: Maybe[ExitStatus] = None
    failure_reason: Maybe[FailureReason] = None
    completion_checkpoint: Maybe[str] = None
    rig_setup_checkpoint: Maybe[str] = None
    error_checkpoint: Maybe[str] = None
    skip_checkpoint: Maybe[str] = None


class PathError(Shape):
    """A path that could not be processed, and why."""

    path: str
    error: str


class DirectoryError(Shape):
    """A directory that could not be removed, and why."""

    directory: str
    error: str
