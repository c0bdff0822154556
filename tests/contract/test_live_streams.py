"""Server-sent events over a real server: nothing missing, nothing twice, whatever happens in between."""

import json
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from tests.support.serving import Server, a_server, demo, execution, journal_of, lines, policy

from hankwatch.serve import live

STREAM = "/api/runs/latest/stream"


@dataclass
class Message:
    """One server-sent event as a browser has it."""

    id: str | None
    event: str
    data: Any
    """None when only the id was sent."""


async def messages(response: httpx.Response) -> AsyncGenerator[Message, None]:
    """As ``EventSource`` reads them: lines end at CR, LF or both, and nowhere else."""
    fields: dict[str, str] = {}
    rest = b""
    async for chunk in response.aiter_bytes():
        *whole, rest = re.split(rb"\r\n|\n|\r", rest + chunk)
        for line in whole:
            if line:
                name, _, value = line.decode().partition(": ")
                assert name in {"id", "event", "data", "retry"}
                fields[name] = value
                continue
            data = json.loads(fields["data"]) if "data" in fields else None
            if fields.keys() - {"retry"}:
                yield Message(fields.get("id"), fields.get("event", "message"), data)
            fields = {}


async def reached(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110 - counters tell nobody when they change
            await anyio.sleep(0.01)


@asynccontextmanager
async def following(
    server: Server, who: str | None = None, *, last: int | None = None, **query: Any
) -> AsyncIterator[AsyncGenerator[Message, None]]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with server.client(who) as client, client.stream("GET", STREAM, params=query, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        async with aclosing(messages(response)) as found:
            yield found


async def texts(found: AsyncGenerator[Message, None], count: int) -> list[str]:
    """The messages of the next ``info`` events."""
    got: list[str] = []
    with anyio.fail_after(10):
        while len(got) < count:
            one = await anext(found)
            if one.event == "message" and one.data is not None:
                assert one.id == str(one.data["cursor"])
                got.append(one.data["data"]["message"])
    return got


async def until(found: AsyncGenerator[Message, None], event: str) -> Message:
    with anyio.fail_after(10):
        async for one in found:
            if one.event == event:
                return one
    raise AssertionError(f"no {event}")


def append(root: Path, *said: str, start: int = 1_000) -> None:
    with journal_of(root).open("ab") as file:
        file.write(lines(*said, start=start))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return execution(tmp_path / "executions", "1764522000000-a", lines("first", "second"))


async def test_what_is_written_from_now_on_comes_at_once(server: Server, root: Path) -> None:
    async with following(server) as found:
        assert (await anext(found)).id == str(journal_of(root).stat().st_size)
        append(root, "third", "fourth")
        assert await texts(found, 2) == ["third", "fourth"]


async def test_a_client_goes_on_where_it_was_when_the_server_has_begun_anew(root: Path) -> None:
    async with a_server(root.parent) as server, following(server, after=0) as found:
        got = [await anext(found), await anext(found)]
    append(root, "while nobody served", start=2_000)
    async with a_server(root.parent) as server, following(server, last=int(got[-1].id or 0)) as found:
        append(root, "again", start=3_000)
        assert await texts(found, 2) == ["while nobody served", "again"]
    assert [one.data["data"]["message"] for one in got] == ["first", "second"]


async def test_a_client_resumes_behind_what_it_had(server: Server, root: Path) -> None:
    async with following(server, after=0) as found:
        first = await anext(found)
    append(root, "third")
    async with following(server, last=int(first.id or 0), after=0) as found:
        append(root, "fourth")
        assert await texts(found, 3) == ["second", "third", "fourth"]


async def test_reading_up_and_following_join_without_a_seam(server: Server, root: Path) -> None:
    written = [str(number) for number in range(3_000)]

    async def write() -> None:
        for start in range(0, len(written), 50):
            append(root, *written[start : start + 50], start=start)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks, following(server, after=0) as found:
        tasks.start_soon(write)
        assert await texts(found, 2 + len(written)) == ["first", "second", *written]


async def test_only_what_is_wanted_is_sent(server: Server, root: Path) -> None:
    async with following(server, type="error,codon.started", after=0) as found:
        await anext(found)
        wanted = {"id": "x", "timestamp": "2026-11-30T17:00:32.123Z", "type": "error", "data": {"message": "wanted"}}
        append(root, "not wanted")
        with journal_of(root).open("ab") as file:
            file.write(json.dumps(wanted).encode() + b"\n")
        assert await texts(found, 1) == ["wanted"]


async def test_a_journal_that_begins_anew_is_told_and_sent_from_its_beginning(server: Server, root: Path) -> None:
    async with following(server) as found:
        await anext(found)
        journal_of(root).write_bytes(lines("anew", start=500))
        assert (await until(found, "reset")).data["cursor"] == 0
        assert await texts(found, 1) == ["anew"]


async def test_a_cursor_behind_the_end_is_told_and_the_journal_sent(server: Server) -> None:
    async with following(server, last=10**9) as found:
        assert (await anext(found)).event == "reset"
        assert await texts(found, 2) == ["first", "second"]


async def test_a_stream_of_a_run_that_was_followed_by_another_ends(tmp_path: Path) -> None:
    root = demo(tmp_path / "executions")
    journal = journal_of(root)
    once = journal.read_bytes()
    run = json.loads(once.splitlines()[0])["data"]["runId"]
    journal.write_bytes(once + once.replace(run.encode(), b"later-run"))
    async with a_server(root.parent) as server, server.client() as client:
        await client.get("/api/runs")
        async with client.stream("GET", f"/api/runs/{run}/stream?after=0") as response:
            *events, last = [one async for one in messages(response)]

    assert [event.id for event in events][-1] == str(len(once))
    assert len(events) == len(once.splitlines())
    assert (last.event, last.data) == ("closed", {"reason": "ended", "cursor": len(once)})


async def test_a_client_that_falls_behind_is_closed_with_its_cursor_and_misses_nothing(
    server: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAILBOX", 100)
    monkeypatch.setattr(live, "SLOW_S", 0.0)
    big = "x" * 2_000
    async with following(server) as found:
        await anext(found)
        append(root, *[f"{number} {big}" for number in range(20_000)])
        await reached(lambda: server.serving.streams.slow["sse"] > 0)
        got = []
        with anyio.fail_after(15):
            async for one in found:
                if one.event == "closed":
                    break
                if one.data is not None:
                    got.append(one.data["data"]["message"].split()[0])
    assert one.data["reason"] == "slow"
    assert len(got) < 20_000

    async with following(server, last=one.data["cursor"]) as found:
        got += [text.split()[0] for text in await texts(found, 20_000 - len(got))]
    assert got == [str(number) for number in range(20_000)]


async def test_a_burst_closes_nobody_who_keeps_up(server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAILBOX", 10)
    written = [str(number) for number in range(3_000)]
    async with following(server) as found:
        await anext(found)
        append(root, *written)
        assert await texts(found, len(written)) == written
        append(root, "after")
        assert await texts(found, 1) == ["after"]


async def test_the_end_of_the_server_is_the_last_word(root: Path) -> None:
    async with a_server(root.parent) as server, following(server) as found:
        await anext(found)
        server.serving.streams.close()
        assert (await until(found, "closed")).data["reason"] == "shutdown"


async def test_a_server_with_a_client_that_reads_nothing_ends_in_time(root: Path) -> None:
    async with a_server(root.parent) as server:
        with socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2]))) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.sendall(f"GET {STREAM}?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            append(root, *["x" * 50_000] * 200)
            await reached(lambda: server.serving.streams.open["sse"] > 0)
            began = anyio.current_time()
            server.serving.streams.close()
    assert anyio.current_time() - began < 10


async def test_a_token_that_is_revoked_ends_its_stream(root: Path, tmp_path: Path) -> None:
    file = policy(tmp_path / "policy.toml")
    async with a_server(root.parent, policy_file=file) as server, following(server, "bob") as found:
        await anext(found)
        policy(file, alice={"tenant": "acme"})
        append(root, "secret")
        one = await anext(found)
    assert (one.event, one.data["reason"]) == ("closed", "revoked")


async def test_more_streams_than_there_is_room_for_are_refused(server: Server) -> None:
    server.serving.streams.limit = 1
    async with following(server) as found, server.client() as client:
        await anext(found)
        answer = await client.get(STREAM)
        assert (answer.status_code, answer.json()["code"]) == (503, "too-many-streams")
    async with following(server) as found:
        await anext(found)


async def test_a_last_event_id_that_is_no_cursor_is_refused(server: Server) -> None:
    async with server.client() as client:
        for written in (b"x", b"-1", b"1e3", b"9" * 40, "٣".encode()):
            answer = await client.get(STREAM, headers=[(b"Last-Event-ID", written)])
            assert (answer.status_code, answer.json()["code"]) == (400, "usage"), written


async def test_text_of_events_cannot_forge_messages(server: Server, root: Path) -> None:
    hostile = 'a\n\nevent: closed\ndata: {"reason":"forged"}\n\n\r\r\u2028<script>alert(1)</script>\x1b[31m'
    async with following(server) as found:
        await anext(found)
        append(root, hostile, "after")
        assert await texts(found, 2) == [hostile, "after"]
