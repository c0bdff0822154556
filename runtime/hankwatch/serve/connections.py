"""Connections of clients that send nothing, take nothing or only pretend to: each has an end.

A server has so many connections and no more, and most time limits are of requests. What is left are those of a
connection: how long a request's head may take, how long what was answered may lie unread, what a WebSocket may be sent
before an application sees anything of it.
"""

import resource
from asyncio import TimerHandle
from asyncio.transports import BaseTransport
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

HEAD_S: Final = 15.0
"""Longest that a request's head may take to come, from the connection's beginning or the head's first byte; the same
for what is still sent of a request that was answered already."""
UNREAD_S: Final = 30.0
"""Longest that a client may leave unread what it was sent, when that is more than the system's own buffers hold."""
SPARED_FILES: Final = 256
"""Of the files that the process may have open, those that are left for everything but connections."""
_FEWEST: Final = 16
FRAMES: Final = 1_000
"""Of one message of a WebSocket, however empty."""


class HttpConnection(H11Protocol):
    """One connection that speaks HTTP/1."""

    _head: TimerHandle | None = None
    _unread: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        if len(self.connections) > room():
            self.transport.abort()
        else:
            self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _stopped(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head, self._unread = _stopped(self._head), _stopped(self._unread)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._head, self._unread = _stopped(self._head), _stopped(self._unread)
        super().handle_websocket_upgrade(event)

    def _watch_head(self) -> None:
        theirs, is_answered = self.conn.their_state, self.conn.our_state is h11.DONE
        if theirs is h11.IDLE or (theirs is h11.SEND_BODY and is_answered):
            self._head = self._head or self.loop.call_later(HEAD_S, self._give_up)
        else:
            self._head = _stopped(self._head)

    def _give_up(self) -> None:
        self._head = None
        if self.cycle is None or self.cycle.response_complete:  # what was answered on the way counts anew
            self.transport.abort()


class SocketConnection(WebSocketsSansIOProtocol):
    """One connection that speaks WebSocket."""

    _unread: TimerHandle | None = None

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < FRAMES:
            super().handle_cont(event)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()  # each ping is answered, and nobody else waits for those answers
        self._unread = self._unread or self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()
        self._unread = _stopped(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread = _stopped(self._unread)
        super().connection_lost(exc)


def room() -> int:
    """How many connections the limit of open files allows; with more, nothing could be read or accepted any more."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST, files - SPARED_FILES)


def _stopped(timer: TimerHandle | None) -> TimerHandle | None:
    """What is left of a timer that is not waited for any more: nothing."""
    if timer is not None:
        timer.cancel()
    return None
