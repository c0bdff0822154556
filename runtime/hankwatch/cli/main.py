"""Entry point of the command line: order of arguments, failures, exit codes."""

import gc
import io
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from hankwatch.cli.commands import app
from hankwatch.core.errors import UsageError

_INTERRUPTED = 130
_COMMON = frozenset({"-q", "--quiet", "-v", "--verbose", "--debug"})


def main() -> NoReturn:
    """Entry point: runs a command and turns what went wrong into the documented form and exit code."""
    # What imports make stays: looking for garbage in it, now or at the end, is a quarter of a short command.
    gc.set_threshold(200_000)
    # A closed descriptor leaves None; commands still do their work and give their exit code.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the process's life
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - see above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names can hold any byte, terminals not any letter
    for number in (signal.SIGTERM, signal.SIGHUP):  # as SIGINT ends a command that does not listen itself, or not yet
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda *_: os._exit(_INTERRUPTED))
    code = _carry_out(_common_first(sys.argv[1:]))
    gc.freeze()
    sys.exit(code)


def _common_first(arguments: list[str]) -> list[str]:
    """``-q``, ``-v`` and ``--debug`` are understood behind the command as well."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    common = [argument for argument in arguments[:end] if argument in _COMMON]
    return [*common, *(argument for argument in arguments[:end] if argument not in _COMMON), *arguments[end:]]


def _refuse_empty(arguments: list[str]) -> None:
    """An empty path would mean the working directory, which nobody who forgot to set a variable meant."""
    if any(argument == "" or (argument.startswith("--") and argument.endswith("=")) for argument in arguments):
        raise UsageError("an argument is empty", hint="is a variable in the command not set? else leave the option out")


def _carry_out(arguments: list[str]) -> int:
    try:
        _refuse_empty(arguments)
        return int(app(args=arguments, prog_name="hankwatch", standalone_mode=False) or 0)
    except Exception as error:  # noqa: BLE001 - people never get a traceback they did not ask for
        if "--debug" in arguments:
            traceback.print_exc()
        from hankwatch.cli import failure

        return failure.explain(error)
