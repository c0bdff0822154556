"""Watches on events and files of their home, over a real journal (spec watches 4 and 7)."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import flowing
from tests.support.streams import Bench, info
from tests.support.watch_bench import WatchBench

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import StoreFailed
from hankwatch.events.activity import FileUpdated
from hankwatch.stream import Journal
from hankwatch.watches.authority import operator
from hankwatch.watches.requests import read_edit
from hankwatch.watches.watch import EndReason, Status, Watch

pytestmark = pytest.mark.slow
DONE = {
    "type": "event",
    "trigger": {
        "type": "event",
        "on": ["info"],
        "conditions": [{"path": "message", "operator": "contains", "value": "done"}],
    },
}


class Home:
    """A home with a journal that is being written, and what watches it."""

    def __init__(self, folder: Path, clock: VirtualClock) -> None:
        self.folder, self.clock = folder, clock
        self.journal = folder / "events.jsonl"
        self.writer = Bench(Journal.open(self.journal))
        self.opened = list[WatchBench]()
        self.bench = self.open()

    def open(self) -> WatchBench:
        """A process over it, as after a restart."""
        bench = WatchBench(
            str(self.folder / "watches.db"),
            self.clock,
            home=self.folder,
            journal=self.journal,
            journal_end=lambda: self.journal.stat().st_size,
        )
        self.opened.append(bench)
        return bench

    def say(self, *messages: str) -> None:
        self.writer.stream.emit(*[info(message) for message in messages])

    def write(self, name: str, content: str) -> None:
        """A file of the workspace, and the event that a run emits for it."""
        (self.folder / name).write_text(content)
        self.writer.stream.emit(FileUpdated(path=name, filename=name, action="modified"))

    async def passes(self, seconds: float) -> None:
        began = self.clock.monotonic()
        await self.bench.until(lambda: self.clock.monotonic() - began >= seconds)

    def close(self) -> None:
        self.writer.stream.close()
        for bench in self.opened:
            bench.database.close()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    clock = VirtualClock()
    clock.step_wall(86_400.0)
    async with flowing(clock, step_s=0.02):
        made = Home(tmp_path, clock)
        yield made
        made.close()


def fires(bench: WatchBench, watch: Watch) -> int:
    return bench.stands(watch).fire_count


async def test_an_event_that_matches_fires_and_one_before_arming_does_not(home: Home) -> None:
    home.say("done before")
    watch = await home.bench.arm(verifier=DONE)
    async with home.bench.running():
        home.say("still at it")
        await home.passes(3)
        assert fires(home.bench, watch) == 0
        home.say("all done")
        ended = await home.bench.ended(watch)
    assert ended.end_reason is EndReason.SATISFIED
    assert "all done" in (ended.last_evidence or "")


async def test_what_happened_while_nothing_ran_is_caught_up_once(home: Home) -> None:
    watch = await home.bench.arm(verifier=DONE, repeat=True)
    async with home.bench.running():
        home.say("done 1")
        await home.bench.until(lambda: fires(home.bench, watch) == 1)
    home.say("done 2")
    again = home.open()
    async with again.running():
        await again.until(lambda: fires(again, watch) == 2)
        await home.passes(3)
    third = home.open()
    async with third.running():
        await home.passes(3)
    assert fires(third, watch) == 2


async def test_many_events_are_one_fire_a_second_and_each_is_counted(home: Home) -> None:
    watch = await home.bench.arm(verifier=DONE, repeat=True)
    async with home.bench.running():
        for number in range(40):
            home.say(f"done {number}")
            await home.passes(0.1)
        await home.bench.until(lambda: counted(home.bench, watch) == 40)
    assert 2 <= fires(home.bench, watch) <= 7


def counted(bench: WatchBench, watch: Watch) -> int:
    """Events that the fires of a watch stand for."""
    told = [event for event in bench.journaled.events.values() if event.TYPE == "watch.met"]
    return sum(event.value["count"] for event in told if event.watch_id == watch.id)  # type: ignore[attr-defined]


async def test_a_sequence_fires_when_it_is_complete(home: Home) -> None:
    pattern = [
        {"type": "info", "conditions": [{"path": "message", "operator": "equals", "value": word}]}
        for word in ("one", "two")
    ]
    sequence = {
        "type": "event",
        "trigger": {"type": "sequence", "pattern": pattern, "interestFilter": {"on": ["info"]}},
    }
    watch = await home.bench.arm(verifier=sequence)
    async with home.bench.running():
        home.say("two", "one")
        await home.passes(3)
        assert fires(home.bench, watch) == 0
    home.say("two")  # while nothing runs
    again = home.open()
    async with again.running():
        await again.ended(watch)
    assert fires(again, watch) == 1


async def test_a_store_that_fails_while_an_event_is_decided_loses_nothing(home: Home) -> None:
    watch = await home.bench.arm(verifier=DONE, repeat=True)
    real, failures = home.bench.store.settle, iter([True])

    def settle(*arguments: Any) -> Any:
        if next(failures, False):
            raise StoreFailed("db", "is away")
        return real(*arguments)

    home.bench.store.settle = settle  # type: ignore[method-assign,assignment]
    async with home.bench.running():
        home.say("done")
        await home.bench.until(lambda: fires(home.bench, watch) == 1)


async def test_an_event_just_before_the_deadline_still_counts(home: Home) -> None:
    watch = await home.bench.arm(verifier=DONE, expires_in_s=30)
    home.say("done")
    await home.passes(40)  # nothing looked until long after
    async with home.bench.running():
        ended = await home.bench.ended(watch)
    assert ended.end_reason is EndReason.SATISFIED


async def test_a_re_aimed_watch_looks_at_what_comes_after(home: Home) -> None:
    watch = await home.bench.arm(verifier=DONE, repeat=True)
    home.say("done")
    await home.bench.service.update_watch(operator(), watch.id, read_edit({"condition": "another"}))
    async with home.bench.running():
        await home.passes(3)
        assert fires(home.bench, watch) == 0
        home.say("done")
        await home.bench.until(lambda: fires(home.bench, watch) == 1)


# Documents


async def test_a_written_file_is_checked_long_before_its_interval(home: Home) -> None:
    watch = await home.bench.arm(
        verifier={
            "type": "document",
            "path": "report.json",
            "pointer": "/state",
            "conditions": [{"path": "value", "operator": "equals", "value": "ok"}],
        },
        interval_s=3_600,
    )
    async with home.bench.running():
        await home.bench.checked(watch, 1)
        home.write("report.json", '{"state": "building"}')
        await home.bench.checked(watch, 2)
        assert home.bench.stands(watch).status is Status.ACTIVE
        home.write("report.json", '{"state": "ok"}')
        ended = await home.bench.ended(watch)
    assert ended.end_reason is EndReason.SATISFIED


def rename_and_create(path: Path, content: str) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_text(content)


def copy_and_truncate(path: Path, content: str) -> None:
    path.with_suffix(".1").write_bytes(path.read_bytes())
    with path.open("r+") as file:
        file.truncate(0)
        file.write(content)


def truncate_and_grow(path: Path, content: str) -> None:
    with path.open("r+") as file:
        file.truncate(0)
        file.write(content * 40)


def delete_and_create(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)


def retarget(path: Path, content: str) -> None:
    path.with_suffix(".other").write_text(content)
    path.unlink()
    path.symlink_to(path.with_suffix(".other"))


@pytest.mark.parametrize(
    "change", [rename_and_create, copy_and_truncate, truncate_and_grow, delete_and_create, retarget]
)
async def test_another_content_is_seen_whatever_became_of_the_file(
    home: Home, change: Callable[[Path, str], None]
) -> None:
    """Each move of the value is one fire, and only that (bug A26); the file appears later, too."""
    watch = await home.bench.arm(verifier={"type": "document", "path": "log.txt"}, trigger="change", interval_s=5)
    path = home.folder / "log.txt"
    async with home.bench.running():
        await home.bench.checked(watch, 1)
        path.write_text("old")
        await home.bench.until(lambda: fires(home.bench, watch) == 1)
        change(path, "new")
        await home.bench.until(lambda: fires(home.bench, watch) >= 2)
        await home.bench.checked(watch, home.bench.stands(watch).check_count + 2)
    assert fires(home.bench, watch) == 2
