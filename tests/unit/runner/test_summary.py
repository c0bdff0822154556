"""What ``runs`` lists: one execution's latest run, however its journal looks."""

from pathlib import Path

import pytest
from tests.support.recordings import at, event, transition, write_journal

from hankwatch.runner.execution import Execution
from hankwatch.runner.layout import Layout
from hankwatch.runner.summary import latest_outcome, summarise
from hankwatch.stream.lock import OwnerLock, lock_path

STARTED = [
    transition(1, "RunStarted", run="r1"),
    transition(2, "CodonStarted", run="r1", codonId="one"),
    event(3, "sentinel.triggered", at(1), sentinelId="s"),
    event(4, "sentinel.error", at(1), sentinelId="s"),
    event(5, "sentinel.unloaded", at(1), sentinelId="s", droppedTriggers=3),
]
COMPLETED = [*STARTED, transition(9, "RunCompleted", at(2), run="r1")]
FAILED = [*STARTED, transition(9, "RunFailed", at(2), run="r1")]


def execution(root: Path, events: list[dict[str, object]]) -> Execution:
    layout = Layout(root)
    layout.journal.parent.mkdir(parents=True)
    write_journal(layout.journal, events)
    return Execution(layout, {})


@pytest.mark.parametrize(
    ("events", "outcome"), [(COMPLETED, "completed"), (FAILED, "failed"), (STARTED, "crashed"), ([], "empty")]
)
def test_a_run_is_what_its_journal_says_it_came_to(
    tmp_path: Path, events: list[dict[str, object]], outcome: str
) -> None:
    found = execution(tmp_path, events)
    assert summarise(found).outcome == latest_outcome(found.layout.journal) == outcome


def test_a_run_whose_journal_is_held_is_live(tmp_path: Path) -> None:
    found = execution(tmp_path, STARTED)
    lock = OwnerLock.acquire(lock_path(found.layout.journal))
    try:
        assert summarise(found).outcome == "live"
    finally:
        lock.release()


def test_what_its_sentinels_did_is_counted(tmp_path: Path) -> None:
    summary = summarise(execution(tmp_path, COMPLETED))
    assert (summary.fired, summary.failed, summary.dropped) == (1, 1, 3)


def test_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    again = [transition(10, "RunStarted", at(3), run="r2"), transition(11, "RunFailed", at(4), run="r2")]
    summary = summarise(execution(tmp_path, [*COMPLETED, *again]))
    assert (summary.outcome, summary.fired, summary.failed, summary.dropped) == ("failed", 0, 0, 0)


@pytest.mark.parametrize(
    "events",
    [
        [transition(1, "RunStarted"), event(2, "sentinel.unloaded", at(1), droppedTriggers="many")],
        [
            transition(1, "RunStarted"),
            event(2, "state.transition", at(1), transition={"type": "CodonStarted", "data": 7}),
        ],
        [event(1, "state.transition", at(1), transition=["odd"], transitionType={"a": 1})],
    ],
)
def test_odd_payloads_never_break_the_list(tmp_path: Path, events: list[dict[str, object]]) -> None:
    assert summarise(execution(tmp_path, events)).as_json()["outcome"] in {"crashed", "empty", "unreadable"}


def test_a_journal_that_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.journal.mkdir(parents=True)
    summary = summarise(Execution(layout, {}))
    assert summary.outcome == "unreadable"
    assert "IsADirectoryError" in str(summary.unreadable)
