"""Listening."""

import socket

import pytest

from hankwatch.core.errors import AddressTaken
from hankwatch.serve.server import address_of, listen


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")]
)
def test_an_address_is_shown_as_a_browser_takes_it(host: str, shown: str) -> None:
    with listen(host, 0) as listening:
        assert address_of(listening) == f"http://{shown}:{listening.getsockname()[1]}"


def test_connections_are_known_as_tcp_so_that_answers_are_sent_at_once() -> None:
    """Asyncio sets TCP_NODELAY on such alone; without it each answer waits 40 ms for an acknowledgement."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("host", ["host.invalid", "203.0.113.1"])
def test_what_is_no_address_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(AddressTaken, match=host):
        listen(host, 0)
