"""A mark on a process tree that neither a cleared environment nor a new session takes off.

Linux has had no use for the limit on file locks since 2.4.25, but hands it down through fork and exec like
any other and shows it in ``/proc``: its value can say whose tree a process belongs to.
"""

import hashlib
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_RLIMIT_LOCKS = 10
"""``setrlimit(2)``; the standard library has no name for it."""
_LABEL = b"Max file locks"
_HALF_BITS = 31


@contextmanager
def tagged(marker: str) -> Iterator[None]:
    """Whatever this process starts meanwhile bears the tag of ``marker``; nothing happens where a limit forbids it."""
    soft, hard = resource.getrlimit(_RLIMIT_LOCKS)
    with suppress(OSError, ValueError):
        resource.setrlimit(_RLIMIT_LOCKS, (_tag(marker), hard))
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(_RLIMIT_LOCKS, (soft, hard))


def bears_tag(pid: int, prefix: str) -> bool:
    """Whether ``pid`` lives and was tagged with the marker ``prefix``, or, where that is a run, with any marker below."""
    tag = _tag_of(pid)
    if tag is None:
        return False
    wanted = _tag(prefix)
    below = "/" not in prefix and tag >> _HALF_BITS == wanted >> _HALF_BITS
    return (below or tag == wanted) and not _has_ended(pid)


def _tag(marker: str) -> int:
    """Half of it names the run, half the whole marker."""
    run = marker.partition("/")[0]
    return _hash(run) << _HALF_BITS | _hash(marker)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) >> 32 - _HALF_BITS


def _tag_of(pid: int) -> int | None:
    try:
        # For each process of the machine, like the environment: buffers and Path cost too much.
        with open(f"/proc/{pid}/limits", "rb", buffering=0) as file:  # noqa: PTH123
            _, label, values = file.read().partition(_LABEL)
    except OSError:
        return None
    soft = values.split(None, 1)[0] if label else b""
    return int(soft) if soft.isdigit() else None


def _has_ended(pid: int) -> bool:
    """Also of a process that its parent has not reaped: it keeps its limits."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123
            state = file.read().rpartition(b")")[2].split()[0]
    except OSError:
        return True
    return state in (b"Z", b"X")
