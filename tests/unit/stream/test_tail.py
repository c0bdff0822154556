"""Following a journal that another process writes, and what may happen to the file meanwhile."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import orjson
import pytest
from tests.support.streams import events, message

from hankwatch.core.clock import VirtualClock
from hankwatch.events.envelope import Event
from hankwatch.stream import JournalReader
from hankwatch.stream.follow import FollowedFile
from hankwatch.stream.reader import POLL_S


def lines(*texts: str) -> bytes:
    return b"".join(orjson.dumps(event.envelope()) + b"\n" for event in unique(texts))


def unique(texts: tuple[str, ...]) -> list[Event]:
    batch = events(*texts)
    for event in batch:
        event.id = f"{message(event):-<36.36}"  # files differ in their first bytes, as with real ids
    return batch


class Follower:
    """Tails a file on a virtual clock and lets the test look after each poll."""

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        self.path = path
        self.clock = clock
        self.reader = JournalReader(path)
        self.heard: list[str] = []

    async def follow(self, after: int = 0) -> None:
        async with aclosing(self.reader.tail(after, clock=self.clock)) as tail:
            async for event in tail:
                self.heard.append(message(event))

    async def poll(self) -> list[str]:
        await self.clock.advance(3 * POLL_S)
        heard, self.heard = self.heard, []
        return heard


@pytest.fixture
async def follower(tmp_path: Path) -> AsyncIterator[Follower]:
    found = Follower(tmp_path / "events.jsonl", VirtualClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(found.follow)
        await anyio.wait_all_tasks_blocked()
        yield found
        tasks.cancel_scope.cancel()


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


async def test_the_file_may_appear_later(follower: Follower) -> None:
    assert await follower.poll() == []
    append(follower.path, lines("a"))
    assert await follower.poll() == ["a"]


async def test_appended_events_come_once_each(follower: Follower) -> None:
    for text in "abc":
        append(follower.path, lines(text))
        assert await follower.poll() == [text]
    assert await follower.poll() == []
    assert follower.reader.restarts == 0


async def test_a_half_written_line_is_not_returned_until_it_is_complete(follower: Follower) -> None:
    line = lines("a")
    for part in (line[:1], line[1:20], line[20:-1]):
        append(follower.path, part)
        assert await follower.poll() == []
    append(follower.path, line[-1:])
    assert await follower.poll() == ["a"]
    assert follower.reader.bad_lines == 0


async def test_a_fragment_its_writer_cuts_off_leaves_no_trace(follower: Follower) -> None:
    append(follower.path, lines("a") + lines("lost")[:30])
    assert await follower.poll() == ["a"]
    os.truncate(follower.path, len(lines("a")))
    append(follower.path, lines("b"))
    assert await follower.poll() == ["b"]
    assert (follower.reader.bad_lines, follower.reader.restarts) == (0, 0)


async def test_a_line_longer_than_a_chunk_arrives_whole(follower: Follower) -> None:
    text = "x" * 1_000_000
    append(follower.path, lines("a", text, "b"))
    heard = [await follower.poll() for _ in range(3)]
    assert [*heard[0], *heard[1], *heard[2]] == ["a", text, "b"]


async def test_from_a_cursor_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append(path, lines("a", "b"))
    async with aclosing(JournalReader(path).tail(len(lines("a")), clock=VirtualClock())) as tail:
        event = await anext(tail)
    assert message(event) == "b"
    assert event.cursor == path.stat().st_size


async def test_only_the_wanted_types(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append(path, lines("a").replace(b'"info"', b'"error"') + lines("b"))
    async with aclosing(JournalReader(path).tail(clock=VirtualClock(), types={"info"})) as tail:
        assert message(await anext(tail)) == "b"


def rename_and_create(path: Path) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_bytes(lines("n"))


def delete_and_create(path: Path) -> None:
    path.unlink()
    path.write_bytes(lines("n"))


def truncate_to_the_same_length(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(lines("n"))
    assert len(lines("n")) == len(lines("o"))


def truncate_and_grow(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(lines("n") + lines("more than there was before" * 9))


def replace_atomically(path: Path) -> None:
    path.with_suffix(".tmp").write_bytes(lines("n"))
    path.with_suffix(".tmp").replace(path)


@pytest.mark.parametrize(
    "change",
    [rename_and_create, delete_and_create, truncate_to_the_same_length, truncate_and_grow, replace_atomically],
)
async def test_another_file_at_the_path_is_read_from_its_beginning(
    follower: Follower, change: Callable[[Path], None]
) -> None:
    append(follower.path, lines("o"))
    assert await follower.poll() == ["o"]
    change(follower.path)
    heard = await follower.poll()
    assert heard[0] == "n"
    append(follower.path, lines("z"))
    assert (heard[1:] + await follower.poll())[-1] == "z"
    assert follower.reader.restarts == 1


async def test_a_truncated_file_is_read_again_once_it_grows(follower: Follower) -> None:
    append(follower.path, lines("o"))
    assert await follower.poll() == ["o"]
    os.truncate(follower.path, 0)
    assert await follower.poll() == []
    append(follower.path, lines("n"))
    assert await follower.poll() == ["n"]
    assert follower.reader.restarts == 1


async def test_what_was_appended_just_before_a_rename_is_not_lost(follower: Follower) -> None:
    append(follower.path, lines("o"))
    assert await follower.poll() == ["o"]
    append(follower.path, lines("p"))
    rename_and_create(follower.path)
    append(follower.path.with_suffix(".1"), lines("q"))
    assert await follower.poll() == ["p", "q", "n"]


async def test_a_retargeted_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(lines("one"))
    (tmp_path / "two").write_bytes(lines("two"))
    link = tmp_path / "events.jsonl"
    link.symlink_to("one")
    clock = VirtualClock()
    follower = Follower(link, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follower.follow)
        assert await follower.poll() == ["one"]
        link.unlink()
        link.symlink_to("two")
        assert await follower.poll() == ["two"]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("size_bytes", [900_000, 1_100_000])
def test_a_line_beyond_the_limit_is_passed_over_in_bounded_memory(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"before\n" + b"x" * size_bytes + b"\nbehind\n")
    file, found = FollowedFile(path, 0, limit_bytes=1_000_000), list[tuple[bytes, int]]()
    while True:
        found += file.lines()
        if not file.has_more:
            break
    file.close()
    shown = [line[:8] for line, _ in found]
    assert shown == [b"before\n", b"x" * 8 if size_bytes < 1_000_000 else b"\x00\n", b"behind\n"]
    assert found[-1][1] == path.stat().st_size
