"""``try``: what a sentinel would do on recorded events, in virtual time (spec cli)."""

from pathlib import Path

import pytest
from tests.support.cases import Case, cases_of
from tests.support.recordings import at, event, fires, ids, seen_by, sentinel_config, transition, watcher, write_journal

from hankwatch.bench.attempt import Attempt
from hankwatch.bench.sources import open_source
from hankwatch.core.errors import UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.matching.near_misses import NearMisses

BASE = {"id": "s", "name": "S", "model": "builtin/echo", "userPromptText": "x"}


def all_cases(kind: str) -> list[Case]:
    return [parameter.values[0] for parameter in cases_of(kind)]


def test_strategies_fire_as_in_the_conformance_cases(tmp_path: Path) -> None:
    path, disagreeing = tmp_path / "events.jsonl", []
    for case in all_cases("strategies"):
        write_journal(path, case["events"])
        found = fires(sentinel_config(case["config"]), path, agent="journal")
        told = [fire.as_json("any") for fire in found]
        if [{"at": one["at"], "eventIds": one["eventIds"]} for one in told] != case["expect"]:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_triggers_match_as_in_the_conformance_cases(tmp_path: Path) -> None:
    path, disagreeing = tmp_path / "events.jsonl", []
    for case in all_cases("triggers"):
        write_journal(path, case["events"])
        config = sentinel_config(BASE | {"trigger": case["trigger"], "execution": {"strategy": "immediate"}})
        if ids(fires(config, path, agent="journal")) != case["expect"]:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_a_buffer_left_at_the_end_is_flushed_at_the_last_event(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1, "info", at(0)), event(2, "info", at(40)), event(3, "error", at(90))])
    (fire,) = fires(watcher("info", strategy="count", threshold=5), path)
    assert fire.as_json("count") == {
        "trigger": 1,
        "strategy": "count",
        "cause": "drain",
        "at": at(90),
        "eventCount": 2,
        "eventIds": ["e001", "e002"],
        "omitted": 0,
    }
    assert fires(watcher("info", strategy="count", threshold=5), path, drain=False) == []


def test_a_timer_fires_at_its_own_instant_whatever_comes_next(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1, "info", at(0)), event(2, "error", at(9_000))])
    (fire,) = fires(watcher("info", strategy="debounce", milliseconds=500), path, drain=False)
    assert (fire.batch.cause, fire.as_json("debounce")["at"]) == ("quiet", at(500))


def test_what_a_sentinel_may_not_see_is_not_counted(tmp_path: Path) -> None:
    lines = [event(1), event(2, "sentinel.output", sentinelId="s"), event(3, "of.the.future", x=1)]
    path = write_journal(tmp_path / "j", lines)
    attempt, source = Attempt(watcher()), open_source(str(path), tmp_path)
    assert ids(list(attempt.fires(source, Redactor()))) == [["e001"]]
    assert attempt.summary(source, 0.0) == {
        "events": 1,
        "matched": 1,
        "triggers": 1,
        "droppedTriggers": 0,
        "droppedEvents": 0,
        "badLines": 0,
        "estimatedCostUsd": 0.0,
    }


TWO_CODONS = [
    transition(1, "RunStarted"),
    transition(2, "CodonStarted", codonId="one"),
    event(3, "info", at(1), message="rig of one"),
    event(4, "codon.started", at(2), codonId="one", codonName="One", sessionId="", startTime=at(2)),
    event(5, "info", at(3), message="of one, unnamed"),
    event(6, "codon.completed", at(4), codonId="one", success=True, cost=0, duration=1, exitStatus={"type": "success"}),
    event(7, "server.idle", at(5), reason="codon-completed", message="after one"),
    transition(8, "CodonStarted", at(6), codonId="two#1"),
    event(9, "info", at(7), message="of two"),
    transition(10, "RunCompleted", at(8)),
    event(11, "info", at(9), message="after the run"),
]


def test_several_codons_are_one_scope(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", TWO_CODONS)
    assert seen_by(fires(watcher("info"), path)) == ["e003", "e005", "e009", "e011"]


@pytest.mark.parametrize(
    ("codon", "seen"),
    [("one", ["e003", "e004", "e005", "e006", "e007"]), ("two#1", ["e009"]), ("two", ["e009"])],
)
def test_a_codon_is_what_its_sentinels_saw_whether_events_name_it_or_not(
    tmp_path: Path, codon: str, seen: list[str]
) -> None:
    path = write_journal(tmp_path / "j", TWO_CODONS)
    assert seen_by(fires(watcher(), path, codon=codon)) == seen


def test_a_codon_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", TWO_CODONS)
    with pytest.raises(UsageError, match="no codon 'three'") as caught:
        fires(watcher(), path, codon="three")
    assert caught.value.hint == "its codons: one, two#1"


def test_prompts_know_the_codon_that_ran_when_they_fired(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", TWO_CODONS)
    (fire,) = fires(watcher("codon.completed"), path)
    assert (fire.scope.codon_id, fire.scope.name, fire.scope.start_time) == ("one", "One", at(2))


def test_secrets_of_the_environment_do_not_reach_a_fire(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1, message="key hunter2hunter2")])
    redactor = Redactor({"API_KEY": "hunter2hunter2"})
    (fire,) = Attempt(watcher()).fires(open_source(str(path), tmp_path), redactor)
    assert "hunter2" not in str(fire.batch.events[0].data)


@pytest.mark.parametrize("odd", [["a"], {"a": 1}, 7, None])
def test_codon_ids_of_any_shape_break_nothing(tmp_path: Path, odd: object) -> None:
    path = write_journal(tmp_path / "j", [event(1, codonId="one"), event(2, codonId=odd, message="x")])
    assert seen_by(fires(watcher(), path, codon="one")) == ["e001", "e002"]


@pytest.mark.parametrize("codon", [None, "one", "two"])
def test_near_misses_count_what_the_attempt_matched_also_where_a_codon_ends(tmp_path: Path, codon: str | None) -> None:
    pattern = [{"type": "codon.completed"}, {"type": "info"}]
    trigger = {
        "type": "sequence",
        "interestFilter": {"on": ["*"]},
        "pattern": pattern,
        "options": {"consecutive": False},
    }
    config = sentinel_config(BASE | {"trigger": trigger, "execution": {"strategy": "immediate"}})
    attempt = Attempt(config, misses=NearMisses(config.trigger))
    source = open_source(str(write_journal(tmp_path / "j", TWO_CODONS)), tmp_path, codon=codon)
    list(attempt.fires(source, Redactor()))
    assert attempt.misses is not None
    assert attempt.misses.matched == attempt.matched == (codon is None)
