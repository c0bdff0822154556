"""Whatever lies where a journal should, every route and page answers soon, and other runs are there as ever."""

import gzip
import os
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.support.serving import a_server, execution, journal_of, lines

from hankwatch.stream import journal_lines

NAME = "1764522000000-odd-aaaaaa"
MANY = 2_500
LOOKS = ("", "/events", "/sentinels", "/reports", "/events?limit=3&after=100")


async def answers(client: httpx.AsyncClient) -> list[tuple[str, int]]:
    """What every way to look at the run is answered."""
    asked = ["/api/runs", "/api/sessions", "/metrics", "/", f"/runs/{NAME}", f"/runs/{NAME}/events"]
    asked += [f"/api/runs/{NAME}{path}" for path in LOOKS]
    return [(path, (await client.get(path)).status_code) for path in asked]


async def test_a_compressed_journal_is_read_like_a_plain_one(tmp_path: Path) -> None:
    execution(tmp_path / "runs", NAME, gzip.compress(lines(*(f"message {number}" for number in range(MANY)))))
    async with a_server(tmp_path / "runs") as server, server.client() as client:
        assert {status for _, status in await answers(client)} == {200}
        detail = (await client.get(f"/api/runs/{NAME}")).json()
        assert detail["events"] == MANY
        page = (await client.get(f"/runs/{NAME}/events")).text
    assert f"message {MANY - 1}" in page


@pytest.mark.parametrize("damage", [lambda data: data[:-200], lambda data: data[:3_000] + b"\0" * 100 + data[3_000:]])
async def test_a_damaged_compressed_journal_is_read_up_to_its_damage(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    packed = gzip.compress(lines(*(os.urandom(40).hex() for _ in range(500))))
    execution(tmp_path / "runs", NAME, damage(packed))
    async with a_server(tmp_path / "runs") as server, server.client() as client:
        found = dict(await answers(client))
        assert {found["/api/runs"], found[f"/runs/{NAME}/events"], found[f"/api/runs/{NAME}"]} == {200}
        assert set(found.values()) <= {200, 503}
        assert (await client.get(f"/api/runs/{NAME}")).json()["outcome"] == "unreadable"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 36)


def folder(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listener(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(before)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("make", [fifo, folder, device, listener])
async def test_what_is_no_file_is_said_to_be_unreadable(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = journal_of(execution(tmp_path / "runs", NAME, b""))
    path.unlink()
    make(path)
    execution(tmp_path / "runs", "1764522000001-good-aaaaaa", lines("here"))
    async with a_server(tmp_path / "runs") as server, server.client() as client:
        assert {status for _, status in await answers(client)} <= {200, 503}
        refused = await client.get(f"/api/runs/{NAME}/events")
        assert (refused.status_code, refused.json()["code"]) == (503, "unreadable")
        assert str(tmp_path) not in refused.text
        assert (await client.get("/api/runs/latest")).json()["events"] == 1


async def test_a_hole_of_any_size_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_lines, "SKIPPED_BYTES", 1 << 20)
    path = journal_of(execution(tmp_path / "runs", NAME, lines("one", "two")))
    os.truncate(path, 1 << 40)
    async with a_server(tmp_path / "runs") as server, server.client() as client:
        assert {status for _, status in await answers(client)} == {200}
        assert (await client.get(f"/api/runs/{NAME}")).json()["events"] == 2


async def test_a_page_goes_on_behind_a_line_that_is_no_event_however_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hankwatch.serve.events._SCANNED_BYTES", 1_000)
    execution(tmp_path / "runs", NAME, lines("one") + b"x" * 5_000 + b"\n" + lines("two", start=1))
    said, after, more = [], 0, True
    async with a_server(tmp_path / "runs") as server, server.client() as client:
        for _ in range(5):
            page = (await client.get(f"/api/runs/{NAME}/events?after={after}")).json()
            said += [event["data"]["message"] for event in page["events"]]
            after, more = page["next"], page["more"]
    assert (said, more) == (["one", "two"], False)


@pytest.mark.parametrize("make", [fifo, huge])
async def test_facts_of_an_execution_are_read_from_a_small_file_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    root = execution(tmp_path / "runs", NAME, lines("one"))
    make(root / ".hankweave" / "execution-meta.json")
    async with a_server(tmp_path / "runs") as server, server.client() as client:
        assert {status for _, status in await answers(client)} == {200}
