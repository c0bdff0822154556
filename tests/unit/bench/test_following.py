"""``tail`` follows a journal until its writer lets go of it."""

from pathlib import Path

import anyio
import pytest
from tests.support.cases import event_of
from tests.support.recordings import event, write_journal

from hankwatch.bench.following import check_cursor, follow
from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import UsageError
from hankwatch.events.envelope import Event
from hankwatch.stream.journal import Journal
from hankwatch.stream.reader import JournalReader


async def test_a_journal_that_nobody_holds_is_shown_to_its_end(tmp_path: Path) -> None:
    path, shown = write_journal(tmp_path / "j", [event(1), event(2)]), list[Event]()
    await follow(JournalReader(path), 0, shown.append, clock=VirtualClock())
    assert [one.id for one in shown] == ["e001", "e002"]


async def test_a_held_journal_is_followed_until_it_is_let_go(tmp_path: Path) -> None:
    clock, shown = VirtualClock(), list[Event]()
    journal = Journal.open(tmp_path / "j", sync_interval_s=None)
    journal.append([event_of(event(1))])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: follow(JournalReader(tmp_path / "j"), 0, shown.append, clock=clock))
        await clock.advance(1)
        journal.append([event_of(event(2))])
        await clock.advance(1)
        assert [one.id for one in shown] == ["e001", "e002"]
        journal.append([event_of(event(3))])  # written and let go between two looks
        journal.close()
        await clock.advance(1)
    assert [one.id for one in shown] == ["e001", "e002", "e003"]


async def test_what_stands_before_the_cursor_is_not_shown(tmp_path: Path) -> None:
    path, shown = write_journal(tmp_path / "j", [event(1), event(2)]), list[Event]()
    (first, _) = JournalReader(path).read()
    check_cursor(path, first.cursor)
    await follow(JournalReader(path), first.cursor, shown.append, clock=VirtualClock())
    assert [one.id for one in shown] == ["e002"]


@pytest.mark.parametrize("cursor", [1, 50, 10_000])
def test_a_number_at_which_no_event_ends_is_no_cursor(tmp_path: Path, cursor: int) -> None:
    with pytest.raises(UsageError, match=f"{cursor} is no cursor"):
        check_cursor(write_journal(tmp_path / "j", [event(1), event(2)]), cursor)
