"""A scripted model provider on loopback that speaks the OpenAI chat dialect over real HTTP."""

import json
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request."""

    text: str | None = "ok"
    """The reply's content; None is JSON null."""
    status: int = 200
    """Anything but 200 sends ``text`` as the error's message."""
    finish_reason: str = "stop"
    prompt_tokens: int = 1000
    completion_tokens: int = 100
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent as it is in place of all of the above."""
    hang: bool = False
    """Never answers; the connection stays open until the server is closed."""
    drop: bool = False
    """Closes the connection without an answer."""


@dataclass(slots=True)
class ModelServer:
    """Answers in the order scripted, then with ``default``; keeps every request it saw."""

    default: Answer = field(default_factory=Answer)
    script: deque[Answer] = field(default_factory=deque)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set with the first request."""
    closing: threading.Event = field(default_factory=threading.Event)
    connections: list[socket.socket] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when a connection has ended."""

    @property
    def url(self) -> str:
        """The base URL an OpenAI-compatible client is given."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def request_count(self) -> int:
        return len(self.bodies)

    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [body["messages"][-1]["content"] for body in self.bodies]


@contextmanager
def model_server(*script: Answer, default: Answer | None = None) -> Iterator[ModelServer]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    state = ModelServer(default=default or Answer(), script=deque(script))

    class Handler(_Handler):
        server_state = state

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            state.closing.set()
            server.shutdown()
            thread.join()
            for connection in state.connections:
                with suppress(OSError):  # most are closed already
                    connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server_state: ModelServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self) -> None:
        super().setup()
        self.server_state.connections.append(self.connection)

    def finish(self) -> None:
        super().finish()
        self.server_state.hung_up.set()

    def do_POST(self) -> None:
        state = self.server_state
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = state.script.popleft() if state.script else state.default
        state.paths.append(self.path)
        state.headers.append(dict(self.headers.items()))
        state.bodies.append(request)
        state.arrived.set()
        if answer.hang or answer.drop:
            if answer.hang:
                state.closing.wait()
            self.close_connection = True
            return
        body = answer.body if answer.body is not None else json.dumps(_payload(request, answer)).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the inherited name
        """Say nothing; tests read stderr."""


def _payload(request: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": answer.text, "type": "scripted", "code": str(answer.status)}}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.get("model"),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text},
                "finish_reason": answer.finish_reason,
            }
        ],
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        },
    }
