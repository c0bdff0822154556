"""Whole process trees, found by a marker in their environment and ended until none is left.

A child that starts its own session, twice if it likes, still hands its environment down, so the marker
finds what process groups and parent ids lose (design "How it runs" 8). Linux only: ``/proc`` and pidfds.
"""

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock
from hankwatch.processes.limits import ends_within

MARKER = "HANKWATCH_PROCESS"
"""Environment variable every child bears; its value is ``<run>/<codon>/<attempt>``."""

KILL_LIMIT_S = 5.0
"""How long ending a tree may take after its grace; only a process the kernel cannot kill is left by then."""

# Open handles per round; a fork bomb must not use up our descriptors.
_HANDLES = 256
_ROUNDS = 100


def marked_pids(prefix: str) -> list[int]:
    """Live processes whose marker is ``prefix`` or lies below it (``run`` covers ``run/codon/1``, not ``run2``).

    Reads ``/proc`` (about 10 µs a process); never lists the calling process. Processes of other users are not seen.
    """
    own = os.getpid()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names are all we need
    return [pid for pid in pids if pid != own and _bears(pid, prefix)]


async def kill_marked(prefix: str, *, clock: Clock, grace_s: float = 0.0, leader: int | None = None) -> tuple[int, ...]:
    """End everything marked with ``prefix``: SIGTERM, ``grace_s``, then SIGKILL until two looks find nothing.

    ``leader`` is an own, not yet reaped child whose process group is signalled too and whose end is waited
    for; it covers members that cleared their environment. Returns the pids that could not be ended within
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
        found = await _signal_all(prefix, leader, signal.SIGKILL, clock, left_s)
        # One look can miss a process that is being exec'ed: its environment is empty for that moment.
        clean_looks = 0 if found else clean_looks + 1
        if clean_looks == 2:
            return ()
    return tuple(await anyio.to_thread.run_sync(marked_pids, prefix))


async def _signal_all(prefix: str, leader: int | None, number: signal.Signals, clock: Clock, limit_s: float) -> int:
    """Signal all that bear the marker and wait for their ends; how many they were."""
    marked = await anyio.to_thread.run_sync(marked_pids, prefix)
    with ExitStack() as stack:
        handles = [h for pid in marked[:_HANDLES] if (h := _hold(stack, pid, prefix)) is not None]
        if leader is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, number)
            handles.append(os.pidfd_open(leader))
            stack.callback(os.close, handles[-1])
        for handle in handles:
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, number)

        async def all_ended() -> None:
            for handle in handles:
                await anyio.wait_readable(handle)

        await ends_within(clock, limit_s, all_ended)
    return len(marked)


def _hold(stack: ExitStack, pid: int, prefix: str) -> int | None:
    """A pidfd of ``pid``, closed by ``stack``; None when it ended or its pid went to another meanwhile."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    stack.callback(os.close, handle)
    return handle if _bears(pid, prefix) else None


def _bears(pid: int, prefix: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or another user's
        return False
    value = next((v for v in environment.split(b"\0") if v.startswith(_ENTRY)), b"")[len(_ENTRY) :]
    wanted = prefix.encode()
    return value == wanted or value.startswith(wanted + b"/")


_ENTRY = f"{MARKER}=".encode()
