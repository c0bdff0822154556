"""Every error a caller can meet, as one tree; those of HTTP requests stand in ``core.request_errors``.

::

    HankwatchError                    code, hint, exit_code
    ├── ConfigError                   faults of files the user wrote                    exit 2
    ├── UsageError                    a command or call that cannot be meant            exit 2
    │   ├── CapReached                as many watches are active as may be
    │   ├── WatchInvalid              a watch that cannot be armed as it is asked for
    │   │   ├── IdTaken               its id is another's
    │   │   ├── Untimely              its instants and now do not go together
    │   │   └── WrongState            it has ended, or is no proposal any more
    │   ├── WatchNotFound             no such watch, or none that the asker may know of
    │   ├── Forbidden                 a known watch that the asker may not do this to
    │   ├── RunNotFound               no execution matches what was named
    │   ├── ArgumentsInvalid          a tool that was called with what it does not take
    │   ├── NotOfRun                  a codon or sentinel that a run lacks
    │   ├── RunNotLive                a run that has ended is asked for something
    │   └── RollbackRefused           a rollback that cannot be meant, or not now
    ├── InfrastructureError           what the run stands on failed; it ends            exit 3
    │   ├── JournalWriteError         the journal could not be written
    │   ├── JournalLocked             another process holds the journal
    │   ├── StoreFailed               the database that holds watches failed
    │   ├── ServerUnreachable         no server answers there
    │   ├── AddressTaken              an address that cannot be listened on
    │   └── ExecutionUnusable         the execution directory cannot be made, read or written
    ├── BadLine                       a line that is not an event
    ├── ModelCallFailed               a model call that produced no usable reply
    │   └── MissingCall               a call that the call log it should be answered from does not have
    ├── TemplateFault                 a prompt that does not parse
    ├── RenderFault                   a prompt that failed while rendering
    ├── SchemaFault                   a JSON Schema or Zod text that cannot be used
    ├── ProcessNotStarted             a child program that could not be started
    │   └── NoWorkingDirectory        there is no folder to start it in
    ├── ServerRefused                 a server that was asked refuses, in its own words
    ├── OrderRefused                  a live run does not do what it was asked to
    ├── RequestRefused                an HTTP request that is not answered
    │   ├── Unauthenticated           nobody knows who makes it
    │   ├── ScopeMissing              its token is for something else
    │   ├── CrossSite                 a page of another site makes it
    │   ├── SecretInAddress           its address holds a token
    │   ├── WrongProtocolVersion      it is meant for another version of a protocol
    │   ├── TooManyStreams            as many live streams are open as may be
    │   └── TooManyTrials             as many sentinel configs are tried as may be
    ├── NoSession                     there is no session that a codon could continue
    ├── CheckpointFailed              a checkpoint could not be made, read or restored
    │   └── GitMissing                there is no git to make it with
    └── PathRefused                   a path an author or config may not use

A sentinel's failure becomes an event; only ``InfrastructureError`` (and cancellation) ends a run.
"""

import errno
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hankwatch.config.diagnostics import Diagnostic


class HankwatchError(Exception):
    """Base of all; shown to people as message, stable code and hint."""

    code: ClassVar[str] = "error"
    """Stable, kebab-case; never reworded once released."""
    exit_code: ClassVar[int] = 1
    """What the command line exits with when this reaches it."""
    hint: str | None = None
    """What to do about it, or None when the message says it all."""


class ConfigError(HankwatchError):
    """Files the user wrote have faults; carries every one of them."""

    code = "config-invalid"
    exit_code = 2

    def __init__(self, diagnostics: "Sequence[Diagnostic]") -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(d.text() for d in self.diagnostics))


class UsageError(HankwatchError):
    """A command or call that cannot be meant as written."""

    code = "usage"
    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class CapReached(UsageError):
    """As many watches of a kind are active as may be."""

    code = "cap-reached"

    def __init__(self, kind: str, what: str, limit: int, held_by: "Sequence[str]") -> None:
        self.limit = limit
        self.held_by = tuple(held_by)
        """Ids that take the places, as far as the asker may know them."""
        held = f": {', '.join(held_by)}" if held_by else ""
        super().__init__(f"at most {limit} active watches of kind {kind} per {what}{held}")
        self.hint = "cancel one that is no longer needed, or wait for one to end"


class WatchInvalid(UsageError):
    """A watch that cannot be armed or edited as it was asked for; carries every fault."""

    code = "watch-invalid"

    def __init__(self, faults: "Sequence[str]") -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(faults))


class IdTaken(WatchInvalid):
    """An id that another watch has."""

    code = "id-taken"

    def __init__(self, watch_id: str, advice: str) -> None:
        self.watch_id = watch_id
        super().__init__([f"id: {watch_id!r} is taken; {advice}"])


class Untimely(WatchInvalid):
    """A watch whose instants are over, too far away, or in the wrong order."""

    code = "untimely"


class WrongState(WatchInvalid):
    """A watch to which this cannot be done as it stands: any more, not yet, or never."""

    code = "wrong-state"


class WatchNotFound(UsageError):
    """There is no such watch, or none that the asker may know of."""

    code = "watch-not-found"

    def __init__(self, watch_id: str) -> None:
        self.watch_id = watch_id
        super().__init__(f"there is no watch {watch_id!r}", hint="`hankwatch watch list` shows them")


class Forbidden(UsageError):
    """The asker may know of the watch, and may not do this to it."""

    code = "forbidden"

    def __init__(self, action: str, watch_id: str, reason: str) -> None:
        self.action = action
        self.watch_id = watch_id
        self.reason = reason
        super().__init__(f"{action} of watch {watch_id} is not allowed: {reason}")


class RunNotFound(UsageError):
    """No execution directory or run matches what was named."""

    code = "run-not-found"

    def __init__(self, name: str, searched: Path) -> None:
        self.name = name
        super().__init__(
            f"no run matches {name!r} under {searched}",
            hint="`hankwatch runs` lists them; a path to an execution directory works too",
        )


class NotOfRun(UsageError):
    """A codon or sentinel is named that the run lacks."""

    code = "not-of-run"

    def __init__(self, kind: str, name: str, known: "Sequence[str]", *, where: str = "this run") -> None:
        self.name = name
        self.known = tuple(known)
        """What it has instead."""
        super().__init__(f"{where} has no {kind} {name!r}", hint=f"its {kind}s: {', '.join(known) or 'none'}")


class RunNotLive(UsageError):
    """A run that has ended, or one that has not begun, is asked to do something."""

    code = "run-not-live"


class ArgumentsInvalid(UsageError):
    """A tool was called with arguments that it does not take; carries every fault."""

    code = "arguments-invalid"

    def __init__(self, faults: "Sequence[str]") -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(faults), hint="the tool's input schema says what it takes")


class InfrastructureError(HankwatchError):
    """Something the run stands on failed; the run ends with this reason."""

    code = "infrastructure"
    exit_code = 3


_OF_PATHS = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
}


def blames_path(error: OSError) -> bool:
    """Whether another path would do; everything else (a full disk, a file system that is read-only) is the machine's state."""
    return error.errno in _OF_PATHS


def not_written(path: Path, error: OSError, *, hint: str | None = None) -> UsageError | InfrastructureError:
    """What to raise when ``path``, which the caller named, could not be written; ``hint`` is for a path that cannot be."""
    message = f"{path} cannot be written: {error.strerror or error}"
    if blames_path(error):
        return UsageError(message, hint=hint)
    failed = InfrastructureError(message)
    failed.hint = "free space or mend the disk, or write it elsewhere"
    return failed


class JournalWriteError(InfrastructureError):
    """The journal could not be written or synced; it was cut after its last whole line."""

    code = "journal-write-failed"

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the journal {path} cannot be written: {reason}")
        self.hint = "free space or mend the disk, then run again; everything up to the last whole line is kept"


class JournalLocked(InfrastructureError):
    """Another process writes to this execution directory."""

    code = "execution-locked"

    def __init__(self, path: Path, holder: str) -> None:
        self.path = path
        self.holder = holder
        super().__init__(f"{path} is held by {holder}")
        self.hint = "wait until it ends, stop it, or use another execution directory"


class ExecutionUnusable(InfrastructureError):
    """An execution directory that cannot be made, read or written."""

    code = "execution-unusable"

    def __init__(self, path: Path, error: OSError) -> None:
        self.path = path
        reason = error.strerror or str(error)
        where = f" ({error.filename})" if error.filename not in {None, str(path)} else ""
        super().__init__(f"the execution directory {path} cannot be used: {reason}{where}")
        self.hint = "mend its mode or owner, or name another: --execution, or run.execution_base_dir in the settings"


class StoreFailed(InfrastructureError):
    """The database that holds watches could not be opened, read or written."""

    code = "store-failed"

    def __init__(self, store: str, reason: str) -> None:
        self.store = store
        self.reason = reason
        super().__init__(f"the watch store {store} failed: {reason}")
        self.hint = "see that the database is there and may be written (setting watches.store)"


class ServerUnreachable(InfrastructureError):
    """Nothing answers at the address of a server."""

    code = "server-unreachable"

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        super().__init__(f"no server answers at {address}: {reason}")
        self.hint = "`hankwatch serve` prints its address; see that it runs"


class AddressTaken(InfrastructureError):
    """An address that cannot be listened on, most often because another process does."""

    code = "address-taken"

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        super().__init__(f"{address} cannot be listened on: {reason}")
        self.hint = "name another with --port, or 0 for any that is free"


class BadLine(HankwatchError):
    """A line of input that is not an event; readers skip and count it."""

    code = "bad-line"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"not an event: {reason}")


class ModelCallFailed(HankwatchError):
    """A model call ended without a usable reply."""

    code = "llm-call-failed"

    def __init__(
        self,
        model: str,
        reason: str,
        *,
        retriable: bool,
        status: int | None = None,
        cost_usd: float | None = 0.0,
        retry_after_s: float | None = None,
        cost_complete: bool = True,
        attempts: int = 1,
    ) -> None:
        self.model = model
        self.reason = reason
        self.retriable = retriable
        """Another attempt, later, may succeed."""
        self.status = status
        """The HTTP status; None when there was none."""
        self.cost_usd = cost_usd
        """What the failed call cost in USD, all attempts together: 0.0 for none, None when nothing is known."""
        self.cost_complete = cost_complete
        """False: an attempt's cost is not known, so ``cost_usd`` is a lower bound."""
        self.retry_after_s = retry_after_s
        """How long the provider asked to be left alone; None when it did not say."""
        self.attempts = attempts
        """How often it was tried."""
        super().__init__(f"{model}: {reason}")


class MissingCall(ModelCallFailed):
    """A call log that should answer does not have this call; the reason shows what changed."""

    code = "recorded-call-missing"

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(model, reason, retriable=False)
        self.hint = "record the run again with this configuration, or undo the change shown"


class TemplateFault(HankwatchError):
    """A prompt template that does not parse."""

    code = "template-invalid"

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason if line is None else f"line {line}: {reason}")


class RenderFault(HankwatchError):
    """A prompt template that failed while rendering, or went over its limits."""

    code = "template-render-failed"

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason if line is None else f"line {line}: {reason}")


class SchemaFault(HankwatchError):
    """A JSON Schema or Zod text that answers cannot be held to."""

    code = "schema-invalid"

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason if line is None else f"line {line}: {reason}")


class PathRefused(HankwatchError):
    """A path that the portable-path rules do not allow."""

    code = "path-refused"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path!r}: {reason}")


class ProcessNotStarted(HankwatchError):
    """A child program that is not there, not executable, or for which the system has no room."""

    code = "process-not-started"

    def __init__(self, program: str, reason: str) -> None:
        self.program = program
        self.reason = reason
        super().__init__(f"{program} cannot be started: {reason}")
        self.hint = f"check that {program} is installed and on the PATH this run gives its children"


class NoWorkingDirectory(ProcessNotStarted):
    """The folder that a child program was to work in is gone, or this user may not enter it."""

    code = "no-working-directory"

    def __init__(self, program: str, folder: Path, reason: str) -> None:
        super().__init__(program, f"{folder}: {reason}")
        self.hint = "give the folder back, with a mode that lets this user in"


class OrderRefused(HankwatchError):
    """A live run does not do what it was asked to, or not now."""

    code = "order-refused"


class NoSession(HankwatchError):
    """There is no session that a codon could continue."""

    code = "no-session"

    def __init__(self, reason: str) -> None:
        super().__init__(f"there is no session to continue: {reason}")
        self.hint = "set its continuationMode to 'fresh', or look at why the codon before it has none"


class CheckpointFailed(HankwatchError):
    """The shadow repository could not be read or written; nothing of the workspace has changed."""

    code = "checkpoint-failed"

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what} failed: {reason}")


class GitMissing(CheckpointFailed):
    """There is no git on the PATH, so there are no checkpoints."""

    code = "git-missing"

    def __init__(self, reason: str) -> None:
        super().__init__("starting git", reason)
        self.hint = "install git; without it nothing can be rolled back"


class RollbackRefused(UsageError):
    """A rollback to something that is not there, or at a moment when it would do harm."""

    code = "rollback-refused"
