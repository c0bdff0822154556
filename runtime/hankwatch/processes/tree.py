"""Whole process trees, found by a marker in their environment and ended until none is left.

A child that starts its own session, twice if it likes, still hands its environment down, so the marker
finds what process groups and parent ids lose (design "How it runs" 8). One that clears or changes its
environment is found by its tag (``processes.tag``): by the marker itself or by the run, not by what lies between.
What a service outside the tree starts on request (a container, a cron job) is not found. Linux only: ``/proc``
and pidfds.
"""

import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.processes.limits import ends_within
from hankwatch.processes.tag import bears_tag

MARKER = "HANKWATCH_PROCESS"
"""Environment variable every child bears; its value is ``<run>/<codon>/<attempt>``."""

KILL_LIMIT_S = 5.0
"""How long ending a tree may take after its grace; only a process the kernel cannot kill is left by then."""

# Open handles per round; a fork bomb must not use up our descriptors.
_HANDLES = 256
_ROUNDS = 100


def marked_pids(prefix: str) -> list[int]:
    """Live processes whose marker is ``prefix`` or lies below it (``run`` covers ``run/codon/1``, not ``run2``).

    Reads ``/proc``, about 30 µs per process of the machine. Never lists the calling process; those of other
    users are not seen.
    """
    return _look(prefix).pids


async def kill_marked(prefix: str, *, clock: Clock, grace_s: float = 0.0, leader: int | None = None) -> tuple[int, ...]:
    """End everything marked with ``prefix``: SIGTERM, ``grace_s``, then SIGKILL until two looks find nothing.

    ``leader`` is an own, not yet reaped child whose process group is signalled too and whose end is waited
    for. Returns the pids that could not be ended within
    ``KILL_LIMIT_S`` (normally none). May be called by any task, also for one tree at once.
    """
    if grace_s > 0:
        await _signal_all(prefix, leader, signal.SIGTERM, clock, grace_s)
    deadline = clock.monotonic() + KILL_LIMIT_S
    clean_looks = 0
    for _ in range(_ROUNDS):
        left_s = deadline - clock.monotonic()
        if left_s <= 0:
            break
        look = await _signal_all(prefix, leader, signal.SIGKILL, clock, left_s)
        # One look is not enough: a list of /proc is not a snapshot, a fork can slip behind the reader.
        clean_looks = 0 if look.pids or look.unsure else clean_looks + 1
        if clean_looks == 2:
            return ()
    return tuple(await anyio.to_thread.run_sync(marked_pids, prefix))


@dataclass(frozen=True, slots=True)
class _Look:
    """One pass over ``/proc``."""

    pids: list[int]
    unsure: bool
    """Some process is just being exec'ed: its environment is not there yet."""


async def _signal_all(prefix: str, leader: int | None, number: signal.Signals, clock: Clock, limit_s: float) -> _Look:
    """Signal all that bear the marker and wait for their ends; which they were."""
    look = await anyio.to_thread.run_sync(_look, prefix)
    with ExitStack() as stack:
        held = [(pid, h) for pid in look.pids[:_HANDLES] if (h := _hold(stack, pid, prefix)) is not None]
        if leader is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, number)
        for pid, handle in held:
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != leader:  # to many programs a second SIGTERM means "at once"
                    signal.pidfd_send_signal(handle, number)
        handles = [handle for _, handle in held]
        if leader is not None:
            handles.append(os.pidfd_open(leader))
            stack.callback(os.close, handles[-1])

        async def all_ended() -> None:
            for handle in handles:
                await anyio.wait_readable(handle)

        await ends_within(clock, limit_s, all_ended)
    return look


def _hold(stack: ExitStack, pid: int, prefix: str) -> int | None:
    """A pidfd of ``pid``, closed by ``stack``; None when it ended or its pid went to another meanwhile."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    stack.callback(os.close, handle)
    return handle if _bears(pid, _environment(pid), prefix) else None


def _look(prefix: str) -> _Look:
    own = str(os.getpid())
    names = (name for name in os.listdir("/proc") if name.isdigit() and name != own)  # noqa: PTH208 - names suffice
    environments = [(pid, _environment(pid)) for pid in map(int, names)]
    return _Look(
        pids=[pid for pid, environment in environments if _bears(pid, environment, prefix)],
        unsure=any(environment == b"" and _is_being_executed(pid) for pid, environment in environments),
    )


def _environment(pid: int) -> bytes | None:
    """What ``pid`` was exec'ed with; None when it is gone or another user's."""
    try:
        # For each process of the machine: buffers and Path would cost seven times as much.
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return None


def _bears(pid: int, environment: bytes | None, prefix: str) -> bool:
    if environment is None or not prefix:  # an empty name, read from a strange journal, would mean everybody's
        return False
    entry, wanted = f"{MARKER}=".encode(), prefix.encode()
    value = next((v for v in environment.split(b"\0") if v.startswith(entry)), b"")[len(entry) :]
    return value == wanted or value.startswith(wanted + b"/") or bears_tag(pid, prefix)


def _is_being_executed(pid: int) -> bool:
    try:
        # After the name in brackets: state is field 3 of proc(5), flags 9, env_start 50.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    kernel_thread = int(fields[6]) & 0x00200000
    return fields[0] != b"Z" and not kernel_thread and fields[47] == b"0"
