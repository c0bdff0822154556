"""Many clients of live streams in one thread: sockets whose bytes are counted, and nothing parsed."""

import base64
import json
import os
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

_MARK = b'"type":"info"'
"""Stands once in each event that is counted."""


@contextmanager
def clients(address: str, protocol: str, count: int) -> Iterator["Crowd"]:
    """So many clients of ``/api/runs/latest/stream`` (``sse``) or ``/ws`` (``websocket``), each of which is there."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(_client(address, protocol)) for _ in range(count)]
        yield Crowd(sockets)


class Crowd:
    """Clients that read as fast as one thread can."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets

    def read(self, events: int, within_s: float = 60.0) -> float:
        """Seconds until each has seen so many more events."""
        left = {one.fileno(): events for one in self._sockets}
        tails = dict.fromkeys(left, b"")
        began_s = time.perf_counter()
        with selectors.DefaultSelector() as selector:
            for one in self._sockets:
                selector.register(one, selectors.EVENT_READ, one)
            while any(count > 0 for count in left.values()):
                if time.perf_counter() - began_s > within_s:
                    raise TimeoutError(f"{sum(left.values())} events are missing")
                for key, _ in selector.select(1.0):
                    data = tails[key.fd] + key.data.recv(262_144)
                    left[key.fd] -= data.count(_MARK)
                    end = data.rfind(_MARK)
                    tails[key.fd] = data[max(end + len(_MARK), len(data) - len(_MARK) + 1) :]
        return time.perf_counter() - began_s


@contextmanager
def _client(address: str, protocol: str) -> Iterator[socket.socket]:
    where = urlsplit(address)
    assert where.hostname is not None
    head = f"Host: {where.netloc}\r\n"
    path = "/api/runs/latest/stream"
    if protocol == "websocket":
        path, key = "/ws", base64.b64encode(os.urandom(16)).decode()
        head += (
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        )
    with socket.create_connection((where.hostname, where.port), timeout=10) as made:
        made.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        _until(made, b"\r\n\r\n")
        if protocol == "websocket":
            made.sendall(_frame(json.dumps({"type": "handshake", "data": {"mode": "readonly"}}).encode()))
            _until(made, b'"server.ready"')
        else:
            _until(made, b"id: ")  # it follows from here on
        yield made


def _until(made: socket.socket, mark: bytes) -> None:
    seen = b""
    while mark not in seen:
        part = made.recv(1)
        assert part, seen
        seen += part


def _frame(text: bytes) -> bytes:
    """One text frame as clients send it; shorter than 126 bytes."""
    mask = b"\0\0\0\0"
    return struct.pack("!BB", 0x81, 0x80 | len(text)) + mask + text
