"""Our ends of a child's pipes: read and written without blocking the loop."""

import os
from contextlib import suppress
from typing import IO

import anyio

CHUNK_BYTES = 64 * 1024
"""One read: what a pipe holds, so what a child wrote before it died is taken by few of them."""


class ReadEnd:
    """The reading end of a pipe; one task reads it at a time."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        os.set_blocking(self._fd, False)
        self._cut = False
        self.ended = False
        """True once everything was read: the writers are gone, or the pipe was cut."""

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        while not self.ended:
            await anyio.lowlevel.checkpoint()  # a writer that never pauses must not keep the loop
            chunk = self.take()
            if chunk is not None:
                return chunk
            if self._cut:
                self.ended = True
            else:
                with suppress(anyio.ClosedResourceError):  # cut while waiting
                    await anyio.wait_readable(self._fd)
        return b""

    def take(self) -> bytes | None:
        """What is there now: bytes, empty at the end, None when the pipe is empty but open."""
        if self.ended:
            return b""
        try:
            chunk = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return None
        self.ended = not chunk
        return chunk

    def cut(self) -> None:
        """End the stream after what is in the pipe now, though somebody still holds its other end."""
        self._cut = True
        anyio.notify_closing(self._fd)

    def close(self) -> None:
        """Give the pipe back; idempotent, a waiting reader sees the end."""
        if not self._pipe.closed:
            self.ended = True
            anyio.notify_closing(self._fd)
            self._pipe.close()


class WriteEnd:
    """The writing end of a pipe; concurrent writes stay whole and in order."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        os.set_blocking(self._fd, False)
        self._turn = anyio.Lock()

    async def write(self, data: bytes) -> bool:
        """Write all of ``data``; False when nobody reads the pipe any more.

        Waits as long as the reader lets the pipe stand full: whoever calls this bounds it. A cancelled
        write may have left a part of ``data`` in the pipe.
        """
        async with self._turn:
            rest = memoryview(data)
            while rest:
                await anyio.lowlevel.checkpoint()  # a reader that keeps up must not keep the loop
                if self._pipe.closed:  # meanwhile; its number may be another file's by now
                    break
                try:
                    rest = rest[os.write(self._fd, rest) :]
                except BlockingIOError:
                    with suppress(anyio.ClosedResourceError):  # closed while waiting
                        await anyio.wait_writable(self._fd)
                except BrokenPipeError:
                    self.close()
            return not rest

    def close(self) -> None:
        """End the stream the child reads; idempotent."""
        if not self._pipe.closed:
            anyio.notify_closing(self._fd)
            self._pipe.close()
