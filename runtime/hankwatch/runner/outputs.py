"""``outputFiles``: what a completed codon made is copied to the output directory (reference 2.2, 3.2.18)."""

import filecmp
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from uuid import uuid4

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.core.errors import PathRefused
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_text
from hankwatch.events.run import ErrorEvent, Info
from hankwatch.events.shapes import PathError
from hankwatch.hank.rig import Command, CommandOperation, OutputGroup
from hankwatch.runner.commands import COMMAND_LIMIT_S, Shell
from hankwatch.runner.control import CodonStop
from hankwatch.runner.globs import Globs
from hankwatch.runner.inside import open_inside
from hankwatch.runner.layout import Layout
from hankwatch.runner.rawlog import RawLog
from hankwatch.runner.scan import Scan, look
from hankwatch.stream.stream import EventStream

STOPPED, FAILED = "output-stopped", "output-failed"
"""Codes of the ``error`` that says that not all was copied."""
_CHUNK_BYTES = 1024 * 1024
_MAX_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class Copied:
    """A file that is in the output directory now."""

    path: str
    """Relative to the workspace."""
    target: str
    """Relative to the output directory; not ``path`` when another file had that name."""


@dataclass(frozen=True, slots=True)
class OutputsEnd:
    """What became of a codon's outputs."""

    copied: tuple[Copied, ...] = ()
    failures: tuple[str, ...] = ()
    """For people, redacted, already emitted; any of them fails the run."""
    stopped: bool = False
    """The codon was stopped before all was copied."""


@dataclass(slots=True)
class Outputs:
    """The output groups of one codon, in order."""

    groups: Sequence[OutputGroup]
    output_dir: Path
    """Where the files go; made when missing."""
    codon_id: str
    base_codon_id: str
    layout: Layout
    env: Mapping[str, str]
    """Of ``beforeCopy`` commands: the process environment with the codon's merged over it."""
    marker: str
    """Of those commands; no other child that is alive at the time may bear it."""
    log_path: Path
    """Every line that they print is appended here, redacted."""
    stream: EventStream
    redactor: Redactor
    stop: CodonStop
    clock: Clock
    last_copied: Path | None = None
    """Target of the rig's last copy, for commands that run there."""
    limit_s: float = COMMAND_LIMIT_S
    """Longest that one command may take."""
    _copied: list[Copied] = field(default_factory=list)
    _failures: list[str] = field(default_factory=list)

    async def run(self) -> OutputsEnd:
        """Run the commands and copy the files; the first group with a failing command is the last.

        Files keep their path below the workspace. One whose name is taken by other content gets a number, and an
        ``info`` says so; the same content is copied once. gitignore does not matter; links are named and left out.
        An ``error`` names all failures, or says that a stop came before all was copied.

        Raises:
            InfrastructureError: the journal failed.
        """
        with RawLog(self.log_path, self.redactor) as log:
            for group in self.groups:
                if not await self._before(group, log):
                    break
                await self._copy(group)
        renamed = [one for one in self._copied if one.path != one.target]
        if renamed:
            details = [{"original": clean_text(one.path), "resolved": clean_text(one.target)} for one in renamed]
            message = f"{len(renamed)} output file(s) got another name, because theirs was taken"
            self.stream.emit(Info(message=message, code="output-renamed", details=details))
        stopped = self.stop.reason is not None
        if stopped:
            so_far = "; ".join([f"{len(self._copied)} file(s) had been copied", *self._failures])
            self._tell(f"Copying the outputs of codon {self.codon_id} was stopped: {so_far}", STOPPED)
        elif self._failures:
            message = f"Outputs of codon {self.codon_id} failed: {'; '.join(self._failures)}"
            self._tell(message, FAILED, fatal=True)
        return OutputsEnd(tuple(self._copied), tuple(self._failures), stopped)

    def _tell(self, message: str, code: str, *, fatal: bool = False) -> None:
        self.stream.emit(
            ErrorEvent(
                message=message,
                codon=self.codon_id,
                base_codon_id=self.base_codon_id,
                fatal=fatal,
                severity="operation",
                code=code,
            )
        )

    async def _before(self, group: OutputGroup, log: RawLog) -> bool:
        """Whether the group may be copied."""
        shell = Shell(self.env, self.marker, self.clock, self.stop, self.limit_s)
        for step in group.before_copy:
            command, allowed = _command(step)
            there = self.last_copied if command.working_directory == "lastCopied" else None
            end = await shell.run(
                command.run, cwd=there or self.layout.agent_root, hear=lambda _source, line: log.keep(line)
            )
            if end.stopped:
                return False
            if end.problem is not None and not allowed:
                self._failures.append(self.redactor.text(f"{command.run!r}: {end.message}"))
                return False
        return True

    async def _copy(self, group: OutputGroup) -> None:
        found = Scan()
        with anyio.CancelScope() as scope:
            self.stop.on_stop(scope.cancel)
            found = await look(self.layout.agent_root, Globs(group.copy_), gitignore=False)
        self._failures += [f"{hole.path or 'the workspace'}: {hole.error}" for hole in found.unreadable]
        links = [clean_text(path) for path, entry in found.files.items() if entry.is_link]
        if links:
            message = f"{len(links)} link(s) were not copied to the output directory: {', '.join(links[:10])}"
            self.stream.emit(Info(message=message, code="output-skipped"))
        for path, entry in found.files.items():
            if self.stop.reason is not None:
                return
            if entry.is_link or any(one.path == path for one in self._copied):
                continue
            outcome = await anyio.to_thread.run_sync(copy_out, self.layout.agent_root, path, self.output_dir)
            if isinstance(outcome, PathError):
                self._failures.append(f"{outcome.path}: {outcome.error}")
            else:
                self._copied.append(Copied(path, outcome))


def _command(step: str | CommandOperation) -> tuple[Command, bool]:
    """What to run, and whether it may fail."""
    if isinstance(step, CommandOperation):
        return step.command, step.allow_failure
    return Command(run=step), False


def copy_out(root: Path, path: str, output_dir: Path) -> str | PathError:
    """Copy one file of the workspace; where it is below ``output_dir``, or why it is not. Blocks, for a thread.

    A file that is there is never changed: the same content is left, other content makes the copy take a number.
    """
    folder = output_dir / PurePosixPath(path).parent
    grown = folder / f".{uuid4().hex}.tmp"
    try:
        with open_inside(root, path) as fd:
            folder.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.dup(fd), "rb") as reading, grown.open("xb") as writing:
                shutil.copyfileobj(reading, writing, _CHUNK_BYTES)
                os.fchmod(writing.fileno(), os.fstat(fd).st_mode & 0o777)
        return next(name for name in _names(path) if _place(grown, output_dir / name))
    except (OSError, PathRefused) as error:
        return PathError(path=clean_text(path), error=str(error))
    finally:
        with suppress(OSError):
            grown.unlink(missing_ok=True)


def _names(path: str) -> Iterator[str]:
    yield path
    whole = PurePosixPath(path)
    for number in range(1, _MAX_NAMES):
        yield str(whole.with_name(f"{whole.stem}-{number}{whole.suffix}"))
    raise OSError(f"{_MAX_NAMES} files of that name are there already")


def _place(grown: Path, target: Path) -> bool:
    """Give the copy this name unless it stands for something else; True too when the same is there."""
    try:
        os.link(grown, target)
    except FileExistsError:
        return target.is_file() and filecmp.cmp(grown, target, shallow=False)
    except OSError:  # a file system without links
        if os.path.lexists(target):
            return target.is_file() and filecmp.cmp(grown, target, shallow=False)
        grown.rename(target)
    return True
