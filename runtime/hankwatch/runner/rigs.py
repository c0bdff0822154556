"""A codon's rig: files copied and commands run in the workspace before its agent starts (reference 2.3, 3.2)."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import assert_never

import anyio.to_thread

from hankwatch.config.refs import resolve_ref
from hankwatch.core.clock import Clock
from hankwatch.core.errors import PathRefused
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import shorten
from hankwatch.events.activity import RigSetupCompleted, RigSetupFailed
from hankwatch.events.run import ErrorEvent, Info
from hankwatch.hank.rig import CommandOperation, Copy, CopyOperation, RigOperation
from hankwatch.runner.commands import COMMAND_LIMIT_S, CommandEnd, Shell
from hankwatch.runner.control import CodonStop
from hankwatch.runner.copying import Interrupted, remove, replace_with_copy
from hankwatch.runner.execution import DATA_FOLDER
from hankwatch.runner.layout import Layout
from hankwatch.runner.rawlog import RawLog
from hankwatch.runner.rig_output import OutputEvents
from hankwatch.stream.stream import EventStream

_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class RigEnd:
    """How a rig ended."""

    failure: RigSetupFailed | None
    """What keeps the codon from going on, already emitted; None when it may."""
    message: str
    """The failure for people; empty without one."""
    stopped: bool
    """The failure is only that the codon was stopped."""
    command_count: int
    """Operations in all."""
    duration_ms: int
    last_copied: Path | None
    """Where the last copy went, as commands see it by ``lastCopied``; None without one."""

    def completed(self, codon_id: str, base_codon_id: str, *, created_checkpoint: bool) -> RigSetupCompleted:
        """What is emitted after the rig's checkpoint was tried (reference 3.2.6)."""
        return RigSetupCompleted(
            codon_id=codon_id,
            base_codon_id=base_codon_id,
            rig_type="command" if self.command_count == 1 else "commands",
            command_count=self.command_count,
            duration_ms=self.duration_ms,
            created_checkpoint=created_checkpoint,
        )


@dataclass(slots=True)
class Rig:
    """The operations of one codon's rig, in order."""

    operations: Sequence[RigOperation]
    codon_id: str
    base_codon_id: str
    codon_name: str
    hank_dir: Path
    """Where copies come from; resolved."""
    layout: Layout
    env: Mapping[str, str]
    """Of commands: the process environment with the codon's merged over it."""
    marker: str
    """Of commands; no other child that is alive at the time may bear it."""
    log_path: Path
    """Every line that commands print is appended here, redacted."""
    stream: EventStream
    redactor: Redactor
    stop: CodonStop
    """A request ends the running command's tree and the rig."""
    clock: Clock
    ignore_failures: bool = False
    """As if every operation had ``allowFailure``."""
    limit_s: float = COMMAND_LIMIT_S
    """Longest that one command may take."""
    _last_copied: Path | None = None
    _failed: int = 0
    _output: OutputEvents = field(init=False)

    async def run(self) -> RigEnd:
        """Carry out the operations up to the first failure that counts, each with its events.

        Emits ``info``, ``rig.output``, ``rig.setup.failed``, and for an ignored failure an ``error``. Whoever
        calls emits ``RigEnd.completed`` when there is no failure, and the fatal ``error`` when there is.

        Raises:
            InfrastructureError: the journal failed.
        """
        count, started_ms = len(self.operations), self.stream.now_ms()
        self._info(f"Rig setup started for codon '{self.codon_name}': {count} operation(s)")
        failure: RigSetupFailed | None = None
        ended = CommandEnd()
        with suppress(OSError):  # what a killed runner left half copied; new copies have new names
            await anyio.to_thread.run_sync(remove, self._staging)
        with RawLog(self.log_path, self.redactor) as log:
            self._output = OutputEvents(self.codon_id, self.base_codon_id, self.stream, self.redactor, log)
            for index, operation in enumerate(self.operations):
                self._info(f"Rig operation {index + 1}/{count}: {operation.type} {_detail(operation)}")
                try:
                    ended = await self._carry_out(operation, index)
                finally:
                    self._output.flush()
                failure = self._note(ended, operation, index)
                if failure is not None:
                    break
        duration_ms = max(0, self.stream.now_ms() - started_ms)
        self._tell_left_out(log)
        if failure is None:
            failed = f", {self._failed} failed" if self._failed else ""
            succeeded = f"{count - self._failed} succeeded{failed}"
            self._info(f"Rig setup completed for codon '{self.codon_name}' ({duration_ms}ms, {succeeded})")
        message = self.redactor.text(ended.message) if failure is not None else ""
        return RigEnd(failure, message, ended.stopped, count, duration_ms, self._last_copied)

    @property
    def _staging(self) -> Path:
        return self.layout.managed / "tmp" / "rig"

    async def _carry_out(self, operation: RigOperation, index: int) -> CommandEnd:
        match operation:
            case CopyOperation():
                return await self._copy(operation.copy_)
            case CommandOperation():
                there = self._last_copied if operation.command.working_directory == "lastCopied" else None
                shell = Shell(self.env, self.marker, self.clock, self.stop, self.limit_s)
                return await shell.run(
                    operation.command.run,
                    cwd=there or self.layout.agent_root,
                    hear=lambda source, line: self._output.hear(source, line, index),
                )
            case _:
                assert_never(operation)

    async def _copy(self, copy: Copy) -> CommandEnd:
        try:
            target = rig_target(copy.to, self.layout)
            put = partial(
                replace_with_copy,
                rig_source(copy.source, self.hank_dir),
                target,
                staging=self._staging,
                goes_on=lambda: self.stop.reason is None,
            )
            await anyio.to_thread.run_sync(put)
        except Interrupted:
            return CommandEnd("other", message="was stopped", stopped=True)
        except PathRefused as refused:
            return CommandEnd("other", message=str(refused))
        except OSError as error:
            return CommandEnd("other", message=f"{copy.source!r} cannot be copied to {copy.to!r}: {error}")
        self._last_copied = target if target.is_dir() else target.parent
        return CommandEnd(exit_code=0)

    def _note(self, ended: CommandEnd, operation: RigOperation, index: int) -> RigSetupFailed | None:
        """The failure that ends the rig, or None; a failure is emitted either way."""
        if ended.problem is None:
            return None
        self._failed += 1
        ignored = (operation.allow_failure or self.ignore_failures) and not ended.stopped
        failure = RigSetupFailed(
            codon_id=self.codon_id,
            base_codon_id=self.base_codon_id,
            failure_type=ended.problem,
            exit_code=ended.exit_code,
            command_index=index,
            ignored=ignored,
        )
        self.stream.emit(failure)
        if not ignored:
            return failure
        self.stream.emit(
            ErrorEvent(
                message=f"Rig operation {index + 1} failed and was ignored: {self.redactor.text(ended.message)}",
                codon=self.codon_id,
                base_codon_id=self.base_codon_id,
                fatal=False,
                severity="operation",
                code="rig-operation-failed",
            )
        )
        return None

    def _tell_left_out(self, log: RawLog) -> None:
        if log.failure is not None:
            self._info(f"Lines of the rig are missing in its log: {log.failure}", code="raw-log")
        if self._output.left_out:
            shown = self.log_path.relative_to(self.layout.root)
            self._info(
                f"{self._output.left_out} line(s) of the rig became no event; all of them: {shown}", code="left-out"
            )

    def _info(self, message: str, code: str | None = None) -> None:
        self.stream.emit(Info(message=message, code=code))


def rig_source(ref: str, hank_dir: Path) -> Path:
    """The file or folder of the hank that a copy names.

    Raises:
        PathRefused: a ref that the path rules do not allow, or that names nothing.
    """
    if posixpath.normpath(ref) == ".":
        raise PathRefused(ref, "is the hank directory itself; name a folder or file in it")
    source = resolve_ref(ref.rstrip("/"), base=hank_dir, root=hank_dir)
    if not source.exists():
        raise PathRefused(ref, "does not exist")
    return source


def rig_target(to: str, layout: Layout) -> Path:
    """Where a copy goes: below the execution directory, its parent an existing folder that no link leads to.

    Raises:
        PathRefused: it leaves the execution directory, would replace the workspace, the data or what the
            runtime owns, or has no parent.
    """
    parts = _parts(to, layout)
    owned = {layout.managed.name, "rigArchive"}
    if len(parts) < 1 + (parts[:1] == [layout.agent_root.name]) or parts[0] in owned:
        raise PathRefused(to, "would replace the workspace itself or what the runtime owns")
    if parts[:2] == [layout.agent_root.name, DATA_FOLDER]:
        raise PathRefused(to, "would change the data, which is read-only")
    parent = layout.root
    for part in parts[:-1]:
        parent /= part
        if parent.is_symlink():
            raise PathRefused(to, f"goes through the symbolic link {part!r}; links are not followed")
    if not parent.is_dir():
        raise PathRefused(to, "has no parent folder; make it first with a command")
    return parent / parts[-1]


def copied_places(operations: Iterable[RigOperation], layout: Layout) -> tuple[str, ...]:
    """What a rig's copies make, relative to the execution directory (``agentRoot/kit``); a rollback removes it."""
    places = []
    for operation in operations:
        if isinstance(operation, CopyOperation):
            with suppress(PathRefused):  # then it was never copied
                places.append("/".join(_parts(operation.copy_.to, layout)))
    return tuple(dict.fromkeys(places))


def _parts(to: str, layout: Layout) -> list[str]:
    """A target's components below the execution directory."""
    if to.startswith("/") or "\0" in to:
        raise PathRefused(to, "is not relative to the workspace")
    parts = [layout.agent_root.name]
    for part in to.split("/"):
        if part == "..":
            if not parts:
                raise PathRefused(to, "leaves the execution directory")
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return parts


def _detail(operation: RigOperation) -> str:
    if isinstance(operation, CopyOperation):
        return shorten(f"{operation.copy_.source} → {operation.copy_.to}", _SHOWN_CHARS)
    return shorten(operation.command.run, _SHOWN_CHARS)
