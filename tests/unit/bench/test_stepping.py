"""A recording step by step: where its sentinels come, finish and go (spec sentinels 5, design "How it runs" 5)."""

from pathlib import Path
from typing import Any

from tests.support.recordings import at, event, fires, seen_by, transition, watcher, write_journal

from hankwatch.bench.sources import open_source
from hankwatch.bench.stepping import Entered, Moment, steps
from hankwatch.core.clock import StreamTime, Timers
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event, IdSource
from hankwatch.stream.stream import EventStream


def to(number: int, state: str, at_: str, codon: str = "one") -> dict[str, Any]:
    return transition(number, "CodonTransitioned", at_, codonId=codon, to=state)


def completed(number: int, at_: str, codon: str = "one") -> dict[str, Any]:
    return event(number, "codon.completed", at_, codonId=codon)


def unloaded(number: int, at_: str, reason: str = "codon-complete", codon: str = "one") -> dict[str, Any]:
    return event(number, "sentinel.unloaded", at_, sentinelId="s", codonId=codon, reason=reason)


RUN = [
    transition(1, "RunStarted", at(0)),
    transition(2, "CodonStarted", at(1), codonId="one"),
    event(3, "sentinel.loaded", at(2), sentinelId="s", codonId="one", source="file"),
    event(4, "codon.started", at(3), codonId="one", codonName="One", codonDescription="first", startTime=at(1)),
    to(5, "completing-sentinels", at(4)),
    event(6, "info", at(5), message="Completing work for 1 sentinel(s)..."),
    event(7, "sentinel.triggered", at(6), sentinelId="s", codonId="one"),
    event(8, "info", at(7), message="Sentinel work completed (1 sentinel(s))"),
    to(9, "completed", at(8)),
    completed(10, at(8)),
    event(11, "state.snapshot", at(9)),
    event(12, "info", at(10), message="outputs copied"),
    event(13, "archive.completed", at(11), codonId="one"),
    unloaded(14, at(12)),
    event(15, "info", at(13), message="All codons completed"),
    transition(16, "RunCompleted", at(14)),
]


def told(path: Path, *, one_scope: bool = False, codon: str | None = None, run: str | None = None) -> str:
    """The steps as words, events by their number."""
    source = open_source(str(path), path.parent, codon=codon)
    source.run = run
    time = StreamTime()
    emitted: list[Event] = []
    stream = EventStream(
        None, time=time, timers=Timers(), redactor=Redactor(), ids=IdSource(0), on_failure=lambda _: None
    )
    stream.subscribe(emitted.append, name="test")
    words = []
    for step in steps(source, stream, time, one_scope=one_scope):
        words += [str(int(one.id[1:])) for one in emitted]
        emitted.clear()
        match step:
            case Entered(scope):
                words.append(f"enter:{scope.codon_id}")
            case Moment.DRAIN | Moment.LEFT | Moment.BROKEN_OFF:
                words.append(step.name.lower())
            case _:
                pass
    return " ".join(words)


def test_sentinels_come_finish_and_go_where_the_recorded_ones_did(tmp_path: Path) -> None:
    assert told(write_journal(tmp_path / "j", RUN)) == (
        "1 2 enter:one 4 5 6 drain 8 9 10 drain 11 drain 12 drain 13 drain left 15 16"
    )


def test_one_scope_is_everything_and_is_finished_at_the_end(tmp_path: Path) -> None:
    assert told(write_journal(tmp_path / "j", RUN), one_scope=True) == "enter:one 1 2 4 5 6 8 9 10 11 12 13 15 16 left"


def test_a_codon_alone_is_what_its_sentinels_saw(tmp_path: Path) -> None:
    assert told(write_journal(tmp_path / "j", RUN), codon="one") == (
        "enter:one 4 5 6 drain 8 9 10 drain 11 drain 12 drain 13 drain left"
    )


def test_without_recorded_sentinels_the_next_codon_or_the_runs_end_ends_a_codon(tmp_path: Path) -> None:
    lines = [
        transition(1, "RunStarted"),
        transition(2, "CodonStarted", codonId="one"),
        completed(3, at(1)),
        event(4, "server.idle", at(2), reason="codon-completed"),
        transition(5, "CodonStarted", at(3), codonId="two#1"),
        event(6, "rollback.codonCheckpoint", at(4), codonId="one"),
        transition(7, "RunCompleted", at(5)),
        event(8, "info", at(6)),
    ]
    assert told(write_journal(tmp_path / "j", lines)) == ("1 2 enter:one 3 drain 4 left 5 enter:two#1 6 broken_off 7 8")


def test_a_journal_that_tells_no_start_enters_a_codon_with_what_names_it(tmp_path: Path) -> None:
    lines = [event(1, "info"), event(2, "codon.started", codonId="one"), event(3, "token.usage", codonId="two")]
    assert told(write_journal(tmp_path / "j", lines)) == "1 enter:one 2 broken_off enter:two 3 broken_off"


def test_a_codon_that_is_tried_again_keeps_its_sentinels(tmp_path: Path) -> None:
    lines = [
        transition(1, "RunStarted"),
        transition(2, "CodonStarted", codonId="one"),
        completed(3, at(1)),
        transition(4, "CodonStarted", at(2), codonId="one"),
        completed(5, at(3)),
    ]
    assert told(write_journal(tmp_path / "j", lines)) == "1 2 enter:one 3 drain 4 5 drain left"


def test_a_killed_codon_ends_with_its_last_event_and_is_entered_again_when_resumed(tmp_path: Path) -> None:
    lines = [
        transition(1, "RunStarted"),
        transition(2, "CodonStarted", codonId="one"),
        event(3, "info", at(1)),
        transition(4, "RunCrashed", at(2)),
        unloaded(5, at(3), "shutdown"),
        transition(6, "RunStarted", at(4), run="r2"),
        event(7, "sentinel.loaded", at(5), sentinelId="s", codonId="one", source="file"),
        completed(8, at(6)),
    ]
    path = write_journal(tmp_path / "j", lines)
    assert told(path) == "1 2 enter:one 3 broken_off 4 6 enter:one 8 drain left"
    assert told(path, run="r1") == "1 2 enter:one 3 broken_off 4"
    assert told(path, run="r2") == "6 enter:one 8 drain left"


def test_a_retry_after_the_run_watches_nothing(tmp_path: Path) -> None:
    retried = event(17, "sentinel.loaded", at(20), sentinelId="s", codonId="one", source="retry")
    path = write_journal(tmp_path / "j", [*RUN, retried, unloaded(18, at(21))])
    assert told(path).endswith("left 15 16")


def test_a_sentinel_that_was_given_up_ends_no_codon(tmp_path: Path) -> None:
    lines = [RUN[0], RUN[1], unloaded(3, at(2), "consecutive-failures"), event(4, "info", at(3))]
    assert told(write_journal(tmp_path / "j", lines)) == "1 2 enter:one 4 broken_off"


def test_what_a_replay_said_of_itself_is_not_replayed(tmp_path: Path) -> None:
    lines = [
        event(1, "info", message="x", code="replay-begun"),
        event(2, "info"),
        event(3, "info", code="report-changed"),
    ]
    assert told(write_journal(tmp_path / "j", lines), one_scope=True) == "enter:imported 2 left"


def test_the_codon_is_told_as_when_it_was_recorded(tmp_path: Path) -> None:
    source = open_source(str(write_journal(tmp_path / "j", RUN)), tmp_path)
    time = StreamTime()
    stream = EventStream(
        None, time=time, timers=Timers(), redactor=Redactor(), ids=IdSource(0), on_failure=lambda _: None
    )
    (entered,) = (step for step in steps(source, stream, time, one_scope=False) if isinstance(step, Entered))
    scope = entered.scope
    assert (scope.codon_id, scope.base_codon_id, scope.name) == ("one", "one", "One")
    assert (scope.description, scope.start_time) == ("first", at(1))


def test_try_finishes_a_codon_where_its_sentinels_did(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", RUN)
    found = fires(watcher("info", strategy="count", threshold=9), path, codon="one")
    assert [[fire.as_json("count")["at"], *seen_by([fire])] for fire in found] == [
        [at(5), "e006"],
        [at(8), "e008"],
        [at(10), "e012"],
    ]
