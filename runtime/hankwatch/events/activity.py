"""Payloads of the agentic backbone: what the agent does, its files, its rig."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hankwatch.events.file_tree import FileNode
from hankwatch.events.payload import CodonPayload, Count, JsonObject, Maybe, Milliseconds, Payload, Shape

ToolOutcome = Literal["ok", "error", "denied", "cancelled", "infra"]


class AssistantAction(CodonPayload):
    """The agent thought, spoke or called a tool."""

    TYPE: ClassVar[str] = "assistant.action"
    action: Literal["thinking", "message", "tool_use"]
    content: str
    """Text; empty for ``tool_use``."""
    tool_name: Maybe[str] = None
    tool_input: Maybe[JsonObject] = None
    tool_use_id: Maybe[str] = None
    """Always there for ``tool_use`` in our own journals; 0.10 had none."""
    parent_tool_use_id: Maybe[str] = None
    """The call that started the sub-agent this belongs to."""


class ToolResult(CodonPayload):
    """A tool call was answered."""

    TYPE: ClassVar[str] = "tool.result"
    tool_use_id: str
    tool_name: str
    result: str
    """Cut at a set number of characters (2,500)."""
    truncated: bool
    """Whether ``result`` was cut."""
    original_length: Count
    """In characters, before the cut."""
    execution_time_ms: Milliseconds
    """From the call's arrival to the answer's."""
    is_error: bool
    """The stream says so: an error flag, an error object, or a non-zero exit code."""
    outcome: Maybe[ToolOutcome] = None
    """What became of the call; absent in 0.10 journals."""
    parent_tool_use_id: Maybe[str] = None
    """The call that started the sub-agent this belongs to."""
    fingerprint: Maybe[str] = None
    """Of the whole text, taken before the cut (spec watchdog 5.4)."""


class FromCodonStart(Shape):
    """The file was there when the codon started."""

    kind: Literal["codon-start"] = "codon-start"


class FromToolUse(Shape):
    """A tool call wrote the file."""

    kind: Literal["tool_use"] = "tool_use"
    tool_use_id: str


class FromWatcher(Shape):
    """The file changed without a tool saying so."""

    kind: Literal["watcher"] = "watcher"


class FileUpdated(Payload):
    """A watched file changed on disk."""

    TYPE: ClassVar[str] = "file.updated"
    codon_id: Maybe[str] = None
    """The runtime id; absent in 0.10 journals."""
    base_codon_id: Maybe[str] = None
    path: str
    """Relative to the agent's workspace."""
    filename: str
    """The last part of ``path``."""
    content: Maybe[str] = None
    """Up to 256 KiB; beyond that ``sha256`` and ``bytes`` stand instead."""
    sha256: Maybe[str] = None
    size_bytes: Maybe[Count] = Field(default=None, alias="bytes")
    action: Literal["created", "modified", "deleted"]
    source: Maybe[Annotated[FromCodonStart | FromToolUse | FromWatcher, Field(discriminator="kind")]] = None


class FiletreeUpdated(Payload):
    """The watched tree, after it changed."""

    TYPE: ClassVar[str] = "filetree.updated"
    tree: list[FileNode]
    """One root list per watched pattern, concatenated."""


class RigOutput(CodonPayload):
    """A line a rig command printed; at most one per second and stream."""

    TYPE: ClassVar[str] = "rig.output"
    stream: Literal["stdout", "stderr"]
    line: str
    """Trimmed, at most 500 characters."""
    command_index: Count
    """0-based."""


class RigSetupCompleted(CodonPayload):
    """A codon's rig is ready."""

    TYPE: ClassVar[str] = "rig.setup.completed"
    rig_type: Literal["command", "commands"]
    """``command`` when there was exactly one operation."""
    command_count: Count
    duration_ms: Milliseconds
    created_checkpoint: bool


class RigSetupFailed(CodonPayload):
    """An operation of a codon's rig failed."""

    TYPE: ClassVar[str] = "rig.setup.failed"
    failure_type: Literal["command_failed", "timeout", "other"]
    exit_code: Maybe[int] = None
    """Of the command, where there was one."""
    command_index: Maybe[Count] = None
    """0-based."""
    ignored: bool
    """Whether the codon went on all the same."""


PAYLOADS: tuple[type[Payload], ...] = (
    AssistantAction,
    ToolResult,
    FileUpdated,
    FiletreeUpdated,
    RigOutput,
    RigSetupCompleted,
    RigSetupFailed,
)
"""Every backbone type; all of them are open."""
