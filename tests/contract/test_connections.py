"""A connection that sends nothing, takes nothing or only pretends to costs little, and ends."""

import base64
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.support.serving import a_site, execution, lines

from hankwatch.serve import connections
from hankwatch.serve import socket as websockets

ASKED = 30
CLOSED = 0x88
"""First byte of the frame that closes."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.8)
    monkeypatch.setattr(connections, "UNREAD_S", 0.3)
    monkeypatch.setattr(websockets, "HANDSHAKE_S", 0.3)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    execution(tmp_path / "runs", "1764522000000-a", lines(*("x" * 1_000 for _ in range(4_000))))
    with a_site(tmp_path / "runs") as server:
        yield server.address


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    where = urlsplit(address)
    with closing(socket.create_connection((where.hostname, where.port), timeout=10)) as one:
        yield one


def head(address: str, path: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {urlsplit(address).netloc}", *more, "", ""]).encode()


def upgraded(address: str, stack: ExitStack) -> socket.socket:
    one = stack.enter_context(connected(address))
    key = base64.b64encode(bytes(16)).decode()
    asked = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}")
    one.sendall(head(address, "/ws", *asked))
    assert one.recv(4_096).startswith(b"HTTP/1.1 101")
    return one


def frame(op: int, data: bytes, *, last: bool = True) -> bytes:
    return bytes([op | (0x80 if last else 0), 0x80 | len(data)]) + bytes(4) + data


def has_ended(one: socket.socket) -> bool:
    """Whether the other side ends it; waits for that."""
    try:
        while one.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_request_that_does_not_come_is_not_waited_for(address: str, sent: bytes) -> None:
    with connected(address) as one:
        one.sendall(sent)
        assert has_ended(one)
    assert httpx.get(f"{address}/healthz").status_code == 200


def test_a_connection_is_kept_between_requests(address: str) -> None:
    with closing(HTTPConnection(urlsplit(address).netloc)) as one:
        one.connect()
        before = one.sock
        for _ in range(3):
            one.request("GET", "/healthz")
            assert one.getresponse().read() == b'{"status":"ok"}'
        assert one.sock is before


def test_a_body_that_nobody_waits_for_is_not_taken_for_ever(address: str) -> None:
    with connected(address) as one:
        one.sendall(head(address, "/healthz", "Content-Type: text/plain", "Content-Length: 100000"))
        assert one.recv(4_096).startswith(b"HTTP/1.1 415")
        one.sendall(b"x")
        assert has_ended(one)


def test_an_answer_that_is_not_read_is_not_kept_for_ever(address: str) -> None:
    with connected(address) as one:
        one.sendall(head(address, "/api/runs/latest/events?limit=1000") * ASKED)
        with connected(address) as other:
            assert has_ended(other)  # later than the limit for the first
        answered = 0
        with suppress(ConnectionError):
            while said := one.recv(1 << 20):
                answered += said.count(b"HTTP/1.1 200")
        assert answered < ASKED


def test_pings_whose_answers_are_not_read_are_not_taken_for_ever(address: str) -> None:
    with ExitStack() as stack:
        one = upgraded(address, stack)
        with pytest.raises(ConnectionError):
            one.sendall(frame(9, b"p" * 125) * 1_000_000)


def test_a_message_of_countless_empty_frames_ends_its_connection(address: str) -> None:
    with ExitStack() as stack:
        one = upgraded(address, stack)
        one.sendall(frame(1, b"", last=False))
        with suppress(ConnectionError):
            one.sendall(frame(0, b"", last=False) * 2 * connections.FRAMES)
        assert has_ended(one)


def test_who_never_shakes_hands_is_let_go_whatever_it_says_meanwhile(address: str) -> None:
    with ExitStack() as stack:
        one = upgraded(address, stack)
        answers = 0
        with suppress(ConnectionError):
            while answers < 100_000:
                one.sendall(frame(1, b"{}"))
                if not (said := one.recv(65_536)) or said[0] == CLOSED:
                    break
                answers += 1
        assert answers < 100_000


def test_connections_leave_files_for_everything_else(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "room", lambda: 3)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(connected(address))
        with connected(address) as one:
            assert has_ended(one)
    assert httpx.get(f"{address}/healthz").status_code == 200


def test_a_request_says_how_long_it_is_in_one_way(address: str) -> None:
    with connected(address) as one:
        both = ("Content-Type: application/json", "Content-Length: 5", "Transfer-Encoding: chunked")
        inner = b"0\r\n\r\n" + head(address, "/healthz")
        one.sendall(head(address, "/api/watches", *both).replace(b"GET", b"POST") + inner)
        said = b"".join(iter(lambda: one.recv(65_536), b""))
    assert (said.count(b"HTTP/1.1"), b" 400 " in said) == (1, True)
