"""Commands that start warm: a process that has imported the command line forks one for each.

What such a command does is its own: a process with its own id, working directory, environment, exit handlers and
exit code. What only a new interpreter can show (what it imports, a locale, ``PYTHON*`` variables) needs a cold start.
"""

import atexit
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

MAX_REQUEST_BYTES = 100_000
"""Arguments, folder and environment of a command together."""

BODIES = ("bench", "check", "control", "journal", "replay", "report", "run", "runs", "sentinels", "validate", "watch")
"""Modules of ``hankwatch.cli`` that most commands run; the others are imported as ever."""


def finished(argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout_s: float) -> tuple[int, str, str]:
    """Run a command without stdin to its end: exit code, stdout and stderr; ``TimeoutError`` when it takes longer."""
    request = json.dumps([list(argv), str(cwd), dict(environ)]).encode()
    assert len(request) <= MAX_REQUEST_BYTES
    pipes = [os.pipe() for _ in ("stdout", "stderr", "its id, at the end its exit code")]
    try:
        socket.send_fds(_forking(), [request], [theirs for _, theirs in pipes])
    finally:
        for _, theirs in pipes:
            os.close(theirs)
    out, err, told = _read([ours for ours, _ in pipes], timeout_s)
    return int(told.split()[1]), _text(out), _text(err)


def _text(written: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(written), encoding="utf-8").read()


def _read(pipes: Sequence[int], timeout_s: float) -> list[bytes]:
    """What comes out of each until its end; closes them."""
    deadline, read = time.monotonic() + timeout_s, [bytearray() for _ in pipes]
    with selectors.DefaultSelector() as open_pipes:
        for number, pipe in enumerate(pipes):
            open_pipes.register(pipe, selectors.EVENT_READ, number)
        try:
            while open_pipes.get_map():
                if not (ready := open_pipes.select(deadline - time.monotonic())):
                    os.kill(int(read[-1].split()[0]), signal.SIGKILL)
                    raise TimeoutError(f"no end within {timeout_s:g} s: {[bytes(some[-2_000:]) for some in read]}")
                for key, _ in ready:
                    read[key.data] += (some := os.read(key.fd, 1 << 16))
                    if not some:
                        open_pipes.unregister(key.fd)
        finally:
            for pipe in pipes:
                os.close(pipe)
    return [bytes(some) for some in read]


@cache
def _forking() -> socket.socket:
    """The way to the process that forks commands; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    with theirs:
        environ = kept | {"LANG": "C.UTF-8"}
        process = subprocess.Popen([sys.executable, __file__], stdin=theirs.fileno(), cwd="/", env=environ)

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours


def _fork_commands() -> None:
    """Fork a command for each request on stdin; returns in a command's process once, and here at the last one's end."""
    requests = socket.socket(fileno=os.dup(0))
    for body in BODIES:
        with suppress(Exception):  # a command that cannot be imported says so itself
            importlib.import_module(f"hankwatch.cli.{body}")
    gc.collect()
    gc.freeze()
    while True:
        request, descriptors, *_ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
        if not request:
            sys.exit()
        if os.fork() == 0:
            requests.close()
            if (command := os.fork()) == 0:
                return _become(*json.loads(request), descriptors=descriptors)
            _tell_end(command, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(-1, os.WNOHANG)


def _become(argv: list[str], cwd: str, environ: dict[str, str], *, descriptors: Sequence[int]) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, *descriptors[:2])):
        os.dup2(descriptor, number)
    for descriptor in (nothing, *descriptors):
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115 - no path
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv[:] = argv
    sys.path.insert(0, str(Path(argv[0]).parent))


def _tell_end(command: int, descriptors: Sequence[int]) -> None:
    """The process between: only a parent learns how a command ends."""
    for descriptor in descriptors[:2]:
        os.close(descriptor)
    os.write(descriptors[2], str(command).encode())
    _, status = os.waitpid(command, 0)
    os.write(descriptors[2], f" {os.waitstatus_to_exitcode(status)}".encode())
    os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # this folder's names are not the commands'
    from hankwatch.cli.main import main

    _fork_commands()
    main()
