"""What an agent's world says is data in every answer: no markup, no script, no line or escape of its own."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.serving import Server, a_server, execution
from websockets.asyncio.client import connect

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b]0;owned\x07\x1b[2J\r\n\r\ndata: forged\n\nid: 1\x00\u2028end"
SHAPES = {"application/json", "application/problem+json", "application/x-ndjson", "text/event-stream", "text/plain"}
"""What no browser takes for a page."""
_RAW = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")
"""Control characters but the line feed, which ends lines."""


def journal() -> bytes:
    """A run whose every name and text is hostile."""
    told = [
        ("state.transition", {"transitionType": "RunStarted", "runId": HOSTILE, "transition": {"type": "RunStarted"}}),
        ("info", {"message": HOSTILE}),
        ("tool.result", {"codonId": HOSTILE, "toolName": HOSTILE, "result": HOSTILE, "isError": True}),
        ("sentinel.loaded", {"sentinelId": HOSTILE, "codonId": HOSTILE, "model": HOSTILE, "reportPath": HOSTILE}),
        ("sentinel.triggered", {"sentinelId": HOSTILE, "codonId": HOSTILE, "triggerNumber": 1, "strategy": HOSTILE}),
        ("sentinel.output", {"sentinelId": HOSTILE, "codonId": HOSTILE, "triggerNumber": 1, "content": HOSTILE}),
        (HOSTILE, {HOSTILE: HOSTILE}),
    ]
    lines = (
        {"id": f"0199d3c4-5b6a-7c8d-9e0f-{n:012x}", "timestamp": "2026-11-30T17:00:32.123Z", "type": t, "data": d}
        for n, (t, d) in enumerate(told)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    execution(tmp_path / "executions", "1764522000000-a", journal())
    async with a_server(tmp_path / "executions") as made:
        yield made


async def test_every_answer_is_one_that_no_browser_or_terminal_obeys(server: Server) -> None:
    watch = {"condition": HOSTILE.replace("\x00", ""), "verifier": {"type": "check", "name": "dial"}, "id": "w"}
    paths = [
        *(f"/api/runs/latest{rest}" for rest in ("", "/events", "/events?format=ndjson", "/sentinels", "/reports")),
        *("/api/runs", "/api/watches", "/api/watches/w", "/api/sessions", "/api/notifications", "/api/deliveries"),
        *(
            "/metrics",
            "/api/runs/%3Cscript%3E",
            "/%3Cscript%3Ealert(1)%3C/script%3E",
            "/api/runs/latest/reports/%3Cb%3E",
        ),
    ]
    async with server.client() as client:
        assert (await client.post("/api/watches", json=watch)).status_code == 201
        for path in paths:
            answer = await client.get(path)
            assert answer.headers["content-type"].partition(";")[0] in SHAPES, path
            assert answer.headers["x-content-type-options"] == "nosniff", path
            assert answer.headers["content-security-policy"].startswith("default-src 'none'"), path
            assert not _RAW.search(answer.content), path


async def test_no_text_forges_a_message_of_a_stream(server: Server) -> None:
    async with (
        server.client() as client,
        client.stream("GET", "/api/runs/latest/stream", params={"after": 0}) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        sent, chunks = b"", answer.aiter_bytes()
        while sent.count(b"data: {") < 7 or not sent.endswith(b"\n\n"):
            sent += await anext(chunks)
    lines = sent.split(b"\n")  # as an EventSource does, but for the CR that must not be there either
    assert all(re.fullmatch(rb"|id: \d+|retry: \d+|data: \{.*\}", line) for line in lines)
    assert not any(_RAW.search(line) for line in lines)


async def test_no_text_forges_a_message_of_a_socket(server: Server) -> None:
    async with connect(server.address.replace("http", "ws") + "/ws", proxy=None) as client:
        await client.send(json.dumps({"type": "handshake", "data": {"mode": "readonly", "sendPreviousEvents": True}}))
        text = await client.recv()
    assert isinstance(text, str)
    assert not _RAW.search(text.encode())
    assert json.loads(text)["type"] == "handshake.response"
