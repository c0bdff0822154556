"""``try`` and ``replay`` never disagree: the same recording makes the same sentinel fire at the same instants."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.recordings import event, fires, ids, transition, write_journal
from tests.support.replays import journal, replayed, written
from tests.support.sentinels import source

from hankwatch.bench.sources import open_source
from hankwatch.core.errors import UsageError
from hankwatch.events.envelope import format_stamp
from hankwatch.sentinels import strategies
from hankwatch.sentinels.source import SentinelSource

START_MS = 1_800_000_000_000
TICKS = st.integers(1, 12)
EXECUTIONS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"strategy": "immediate"}),
    st.fixed_dictionaries(
        {"strategy": st.just("debounce"), "milliseconds": TICKS},
        optional={"maxWaitMilliseconds": st.none() | st.integers(1, 20)},
    ),
    st.fixed_dictionaries({"strategy": st.just("count"), "threshold": st.integers(1, 5)}),
    st.fixed_dictionaries({"strategy": st.just("timeWindow"), "milliseconds": TICKS}),
)
TRIGGERS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "event", "on": ["*"]},
        {"type": "event", "on": ["info", "codon.completed", "state.snapshot"]},
        {"type": "event", "on": ["info"], "conditions": [{"path": "message", "operator": "equals", "value": "b"}]},
        {
            "type": "sequence",
            "interestFilter": {"on": ["info", "error"]},
            "pattern": [{"type": "info"}, {"type": "error"}],
            "options": {"consecutive": False, "withinMilliseconds": 9},
        },
    ]
)
CODONS = st.sampled_from(["one", "two#0", "two#1"])
HAPPENINGS = st.one_of(
    st.tuples(st.just("info"), st.sampled_from("ab")),
    st.tuples(st.just("error"), st.none()),
    st.tuples(st.sampled_from(["started", "agent", "completing", "completed", "loaded", "unloaded"]), CODONS),
    st.tuples(st.sampled_from(["snapshot", "archive", "output"]), CODONS),
    st.tuples(st.sampled_from(["RunStarted", "RunCompleted", "RunCrashed"]), st.none()),
)
RECORDINGS = st.lists(st.tuples(st.integers(-2, 9), HAPPENINGS), min_size=1, max_size=40)


@pytest.fixture(autouse=True, scope="module")
def small_batches() -> Any:
    """Batches of six events, so that they are full within an example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "MAX_BATCH_EVENTS", 6)
        yield


def line(number: int, at: str, kind: str, about: str | None) -> dict[str, Any]:
    """One line of a journal, likely or not."""
    match kind:
        case "info":
            return event(number, "info", at, message=about)
        case "error":
            return event(number, "error", at, message="no", fatal=False, severity="operation")
        case "started":
            return transition(number, "CodonStarted", at, codonId=about)
        case "agent":
            return event(number, "codon.started", at, codonId=about, codonName=about, sessionId="", startTime=at)
        case "completing":
            return transition(number, "CodonTransitioned", at, codonId=about, to="completing-sentinels")
        case "completed":
            return event(number, "codon.completed", at, codonId=about)
        case "loaded" | "unloaded":
            data = {"sentinelId": "s", "codonId": about, "source": "file", "reason": "codon-complete"}
            return event(number, f"sentinel.{kind}", at, **data)
        case "snapshot":
            return event(number, "state.snapshot", at, totalCost=0)
        case "archive":
            return event(number, "archive.completed", at, codonId=about)
        case "output":
            return event(number, "sentinel.output", at, sentinelId="s", codonId=about)
        case _:
            return transition(number, kind, at, run=f"r{number}")


def recorded(path: Path, happenings: list[tuple[int, tuple[str, str | None]]]) -> Path:
    lines, at_ms = [], START_MS
    for number, (gap_ms, (kind, about)) in enumerate(happenings):
        at_ms += gap_ms  # stamps that go back occur too
        lines.append(line(number, format_stamp(at_ms), kind, about))
    return write_journal(path, lines)


def of_try(watcher: SentinelSource, path: Path, codon: str | None) -> list[tuple[str, str, list[str]]]:
    assert watcher.config is not None
    found = fires(watcher.config, path, agent="journal", codon=codon)
    told = [fire.as_json("any") for fire in found]
    return [(one["cause"], one["at"], events) for one, events in zip(told, ids(found), strict=True)]


def of_replay(watcher: SentinelSource, path: Path, out: Path, codon: str | None) -> list[tuple[str, str, list[str]]]:
    async def play() -> None:
        recording = open_source(str(path), path.parent, agent="journal", codon=codon)
        result = await replayed(recording, out, {"*" if codon is None else codon.partition("#")[0]: [watcher]})
        assert result.error_count == 0, result.errors

    anyio.run(play)
    triggered = [one.data for one in journal(out) if one.type == "sentinel.triggered"]
    return [(data["cause"], data["at"], data["eventIds"]) for data in triggered]


@settings(max_examples=40, deadline=None)
@given(RECORDINGS, EXECUTIONS, TRIGGERS, st.none() | CODONS)
def test_try_and_replay_agree_on_every_fire(
    happenings: list[Any], execution: dict[str, Any], trigger: dict[str, Any], codon: str | None
) -> None:
    watcher = source("watcher", execution=execution, trigger=trigger)
    with tempfile.TemporaryDirectory() as folder:
        path = recorded(Path(folder) / "events.jsonl", happenings)
        try:
            expected = of_try(watcher, path, codon)
        except UsageError:  # nobody entered that codon
            with pytest.raises(UsageError):
                of_replay(watcher, path, Path(folder) / "out", codon)
            return
        assert of_replay(watcher, path, Path(folder) / "out", codon) == expected


@settings(max_examples=15, deadline=None)
@given(RECORDINGS, st.lists(st.tuples(EXECUTIONS, TRIGGERS), min_size=2, max_size=4))
def test_every_sentinel_fires_as_if_it_were_alone_and_always_with_the_same_bytes(
    happenings: list[Any], watchers: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    several = [source(f"s{n}", execution=execution, trigger=on) for n, (execution, on) in enumerate(watchers)]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        path = recorded(root / "events.jsonl", happenings)

        async def play(out: Path) -> None:
            recording = open_source(str(path), root, agent="journal")
            await replayed(recording, out, {"*": several})

        anyio.run(play, root / "one")
        anyio.run(play, root / "two")
        assert written(root / "one") == written(root / "two")
        for watcher in several:
            triggered = [one.data for one in journal(root / "one") if one.data.get("sentinelId") == watcher.id]
            found = [(d["cause"], d["at"], d["eventIds"]) for d in triggered if "cause" in d and "at" in d]
            assert found == of_try(watcher, path, None)
