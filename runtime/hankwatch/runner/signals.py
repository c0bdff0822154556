"""Signals heard by a thread of its own: also while the event loop stands still (design rule 9)."""

import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager


@contextmanager
def heard(numbers: Collection[signal.Signals], on_signal: Callable[[], None]) -> Iterator[None]:
    """While the body runs, each signal of ``numbers`` calls ``on_signal`` in a thread, and does nothing else.

    The interpreter notes a signal in a pipe the moment it comes; running a handler would have to wait for the
    main thread. For the main thread of a process whose event loop takes no signals itself.
    """
    readable, writable = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writable, False)
    listener = threading.Thread(target=_listen, args=(readable, frozenset(numbers), on_signal), daemon=True)
    listener.start()
    pipe_before = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    before = {number: signal.signal(number, _nothing) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(pipe_before)
        os.close(writable)  # which ends the listener


def _listen(readable: int, numbers: frozenset[int], on_signal: Callable[[], None]) -> None:
    with os.fdopen(readable, "rb", buffering=0) as pipe:
        while noted := pipe.read(64):
            for number in noted:
                if number in numbers:
                    on_signal()


def _nothing(number: int, frame: object) -> None:
    """The pipe has it; without a handler the process would end here."""
