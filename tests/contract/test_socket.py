"""The 0.10 WebSocket protocol, by a client that knows nothing else (reference 5)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.serving import Server, a_server, journal_of, lines, policy
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus


def opened(server: Server, **headers: str) -> connect:
    return connect(server.address.replace("http", "ws") + "/ws", additional_headers=headers, proxy=None)


async def say(client: ClientConnection, type_name: str, data: Any = None, **more: Any) -> None:
    await client.send(json.dumps({"type": type_name, "data": data or {}, **more}))


async def heard(client: ClientConnection, *types: str) -> dict[str, Any]:
    """The next message, or the next of these types."""
    with anyio.fail_after(10):
        while True:
            message: dict[str, Any] = json.loads(await client.recv())
            if not types or message["type"] in types:
                return message


@asynccontextmanager
async def shaken(server: Server, mode: str = "readandwrite", **headers: str) -> AsyncIterator[ClientConnection]:
    async with opened(server, **headers) as client:
        await say(client, "handshake", {"mode": mode})
        assert (await heard(client))["type"] == "handshake.response"
        assert (await heard(client))["type"] == "server.ready"
        yield client


async def test_a_handshake_is_answered_with_what_there_is(server: Server, root: Path) -> None:
    events = [json.loads(line) for line in journal_of(root).read_bytes().splitlines()]
    async with opened(server) as client:
        await say(client, "handshake", {"mode": "readandwrite", "sendPreviousEvents": True})
        answer, ready = await heard(client), await heard(client)

    assert answer["data"].keys() == {"clientId", "mode", "eventHistory", "totalEvents"}
    assert (answer["data"]["mode"], answer["data"]["totalEvents"]) == ("readandwrite", len(events))
    history = answer["data"]["eventHistory"]
    assert history == [event for event in events[-50:][::-1] if event["type"] != "sentinel.triggered"]
    assert ready["data"]["executionPath"] == str(root)
    assert f":{ready['data']['port']}" in server.address


async def test_nothing_is_told_before_the_handshake(server: Server, root: Path) -> None:
    async with opened(server) as client:
        with journal_of(root).open("ab") as file:
            file.write(lines("early"))
        handshake = '{"type":"handshake","data":{"mode":"king"}}'
        for message in ("ping", "{}", '{"type":"ping"}', handshake, "[" * 500, handshake.encode(), b"\xff", b"", ""):
            await client.send(message)
            answer = await heard(client)
            assert (answer["type"], answer["data"]["code"]) == ("error", "HANDSHAKE_REQUIRED")


async def test_what_is_no_command_is_told_and_the_connection_goes_on(server: Server) -> None:
    async with shaken(server) as client:
        for message in ("skip", "[]", '{"type":7}', "[" * 60_000, b'{"type":"ping"}', b"\xff", ""):
            await client.send(message)
            assert (await heard(client))["data"]["code"] == "INVALID_COMMAND"
        await say(client, "ping")
        assert (await heard(client))["type"] == "pong"


async def test_history_comes_oldest_first_in_batches(server: Server, root: Path) -> None:
    with journal_of(root).open("ab") as file:
        file.write(lines(*map(str, range(500))))
    events = [json.loads(line) for line in journal_of(root).read_bytes().splitlines()]
    async with shaken(server) as client:
        await say(client, "history.sync")
        batches: list[dict[str, Any]] = []
        while not batches or batches[-1]["hasMore"]:
            batches.append((await heard(client, "history.batch"))["data"])

    assert [event for batch in batches for event in batch["events"]] == events
    assert len(batches) == 3


async def test_events_come_as_they_are_written_and_after_a_restart_too(root: Path) -> None:
    for number in range(2):
        async with a_server(root.parent) as server, shaken(server, "readonly") as client:
            with journal_of(root).open("ab") as file:
                file.write(lines(f"at {number}", start=number))
            assert (await heard(client, "info"))["data"]["message"] == f"at {number}"


async def test_of_sentinels_what_they_report_is_sent(server: Server, root: Path) -> None:
    def line(kind: str, sentinel: str, **data: Any) -> bytes:
        data |= {"sentinelId": sentinel, "codonId": "c"}
        envelope = {"id": f"{kind}-{sentinel}", "timestamp": "2026-11-30T17:00:32.123Z", "type": kind, "data": data}
        return json.dumps(envelope).encode() + b"\n"

    quiet = {"lifecycle": False, "errors": False, "outputs": False, "triggers": True}
    async with shaken(server) as client:
        with journal_of(root).open("ab") as file:
            file.write(line("sentinel.loaded", "quiet", reportToWebsocket=quiet))
            for kind in ("sentinel.triggered", "sentinel.output", "sentinel.error", "sentinel.unloaded"):
                file.write(line(kind, "quiet") + line(kind, "plain"))
            file.write(lines("end"))
        got = []
        while (message := await heard(client))["type"] != "info":
            got.append(message["id"])

    assert got == [
        "sentinel.loaded-quiet",
        "sentinel.triggered-quiet",
        "sentinel.output-plain",
        "sentinel.error-plain",
        "sentinel.unloaded-plain",
    ]


async def test_pings_are_answered_to_one_or_to_all(server: Server) -> None:
    async with shaken(server) as one, shaken(server, "readonly") as other:
        await say(one, "ping")
        assert "clientId" not in (await heard(one, "pong"))["data"]
        await say(one, "ping.broadcast")
        assert (await heard(one, "pong"))["data"]["clientId"] == (await heard(other, "pong"))["data"]["clientId"]


async def test_a_client_that_only_reads_commands_nothing(server: Server) -> None:
    async with shaken(server, "readonly") as client:
        for command in ("codon.next", "codon.skip", "rollback.toLastSuccess", "ping.broadcast"):
            await say(client, command, id="c-1")
            message = await heard(client, "error")
            assert (message["data"]["code"], message["data"]["commandId"]) == ("INSUFFICIENT_PERMISSIONS", "c-1")


@pytest.mark.parametrize(
    ("command", "data", "said"),
    [
        ("codon.next", {}, "no run is live"),
        ("codon.redo", {}, "rollback.toCodon with autoRestart goes back"),
        ("codon.start", {"codonId": "one"}, "codon.next starts the one that the run waits with"),
        ("codon.explode", {}, "is no command here"),
        ("rollback.toCheckpoint", {}, "checkpointSha is missing"),
        ("rollback.toCodon", {"codonId": 1}, "codonId is missing"),
        ("__proto__", {}, "is no command here"),
    ],
)
async def test_what_cannot_be_done_is_told_to_who_asked(server: Server, command: str, data: Any, said: str) -> None:
    async with shaken(server) as client:
        await say(client, command, data, id="c-2")
        message = (await heard(client, "error"))["data"]
        assert said in message["message"]
        assert (message["code"], message["commandId"], message["fatal"]) == ("COMMAND_REFUSED", "c-2", False)
        await client.send("\x00 not json")
        assert (await heard(client, "error"))["data"]["code"] == "INVALID_COMMAND"


async def test_pages_of_other_sites_and_the_unknown_are_not_let_in(root: Path, tmp_path: Path) -> None:
    async with a_server(root.parent) as server:
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            with pytest.raises(InvalidStatus) as refused:
                await opened(server, **headers).__aenter__()
            assert refused.value.response.status_code == 403
    async with a_server(root.parent, policy_file=policy(tmp_path / "policy.toml")) as server:
        for who, status in {None: 401, "wrong": 401, "secret-of-eve": 404}.items():
            with pytest.raises(InvalidStatus) as refused:
                await opened(server, **({} if who is None else {"Authorization": f"Bearer {who}"})).__aenter__()
            assert refused.value.response.status_code == status
        async with opened(server, Authorization="Bearer secret-of-bob") as client:
            await say(client, "handshake", {"mode": "readandwrite"})
            assert (await heard(client))["data"]["mode"] == "readonly"


async def test_the_end_of_the_server_closes_with_the_cursor(root: Path) -> None:
    async with a_server(root.parent) as server, shaken(server) as client:
        with journal_of(root).open("ab") as file:
            file.write(lines("last"))
        await heard(client, "info")
        server.serving.streams.close()
        with pytest.raises(ConnectionClosed) as closed:
            await heard(client)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.reason == f"shutdown; cursor {journal_of(root).stat().st_size}"


async def test_plain_http_is_told_what_this_is(server: Server) -> None:
    async with server.client() as client:
        answer = await client.get("/ws")
    assert (answer.status_code, answer.json()["hint"][:10]) == (400, "connect to")
