"""A client of the 0.10 WebSocket protocol that knows what its reference says and nothing else."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.sync.client import ClientConnection, connect

OWN = {"handshake.response", "server.ready", "pong", "history.batch", "incomplete.codon"}
"""Connection state: no journal has it."""
WAIT_S = 10.0


@dataclass
class ProtocolClient:
    """Keeps every event once, by its id, however often and in whichever order a server tells it."""

    address: str
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    _socket: ClientConnection | None = None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Shaken hands, and everything that the journal has taken in; again after a server has gone."""
        with connect(self.address.replace("http", "ws") + "/ws", proxy=None) as self._socket:
            self._send({"type": "handshake", "data": {"mode": "readandwrite", "sendPreviousEvents": True}})
            answer = self._next()
            assert answer["type"] == "handshake.response"
            for event in reversed(answer["data"]["eventHistory"]):
                self._take(event)
            assert self._next()["type"] == "server.ready"
            self.sync()
            yield

    def sync(self) -> None:
        """Ask for the whole history, which comes in batches."""
        self._send({"type": "history.sync", "id": "sync"})
        more = True
        while more:
            message = self._next()
            if message["type"] == "history.batch":
                more = message["data"]["hasMore"]
                for event in message["data"]["events"]:
                    self._take(event)

    def command(self, name: str, **data: Any) -> dict[str, Any]:
        """Ask for something; the event that answers it."""
        self._send({"type": name, "id": f"{name}-1", "data": data})
        while (message := self._next())["data"].get("commandId") != f"{name}-1":
            pass
        return message

    def until(self, type_name: str) -> dict[str, Any]:
        """The next event of that type."""
        while (message := self._next())["type"] != type_name:
            pass
        return message

    def _send(self, message: dict[str, Any]) -> None:
        assert self._socket is not None
        self._socket.send(json.dumps(message))

    def _next(self) -> dict[str, Any]:
        assert self._socket is not None
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=WAIT_S))
        if message["type"] not in OWN:
            self._take(message)
        return message

    def _take(self, event: dict[str, Any]) -> None:
        self.events.setdefault(event["id"], event)
