"""What people see when a command fails: a stable code and a hint, never a traceback (spec cli)."""

from collections.abc import Iterator

from typer.exceptions import TyperException

from hankwatch.cli.output import ReaderGone, print_error, print_fault, stderr
from hankwatch.core.errors import HankwatchError, InfrastructureError, UsageError, blames_path

_INTERRUPTED = 130
_INTERNAL = 3


def explain(error: Exception) -> int:
    """Say what went wrong on stderr; the exit code that goes with it."""
    causes = list(_leaves(error))
    if any(isinstance(cause, ReaderGone) for cause in causes):
        return 0
    known = [cause for cause in causes if isinstance(cause, HankwatchError)]
    if known:
        worst = max(known, key=lambda cause: cause.exit_code)
        print_error(worst)
        return worst.exit_code
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return _INTERRUPTED
    first = causes[0]
    if isinstance(first, TyperException):
        print_error(_wrong_usage(first))
        return UsageError.exit_code
    if isinstance(first, OSError):
        print_fault("system", str(first), "the system refused; mend what it names and try again", stderr())
        return UsageError.exit_code if blames_path(first) else InfrastructureError.exit_code
    hint = "this is a defect of hankwatch; --debug shows where"
    print_fault("internal", f"{type(first).__name__}: {first}", hint, stderr())
    return _INTERNAL


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """What failed, out of the groups that task groups wrap around it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _wrong_usage(error: TyperException) -> UsageError:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "hankwatch"
    return UsageError(error.format_message(), hint=f"`{command} --help` shows what it takes")
