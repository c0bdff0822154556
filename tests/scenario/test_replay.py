"""A recording once more, in virtual time, with its sentinels run anew (spec hank 5, design "How it runs" 5)."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.hanks import codon
from tests.support.recordings import at, event, transition, write_journal
from tests.support.remotes import ScriptedRemote
from tests.support.replays import fires_of, journal, replayed, written
from tests.support.runs import Ran, killed_after, run_here, write_hank
from tests.support.sentinels import on, source

from hankwatch.bench.replay import Progress
from hankwatch.bench.sources import open_source
from hankwatch.bench.stepping import is_left_out
from hankwatch.core.clock import SystemClock, VirtualClock
from hankwatch.core.errors import UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event
from hankwatch.hank.load import load_hank
from hankwatch.llm import CallLog, CallLogClient, ModelRouter
from hankwatch.sentinels.source import SentinelSource

NO_SECRETS = Redactor(enabled=False)
PROMPT = "{{ it.codon }} at {{ it.world.currentTime }}: {{ it.events | map(attribute='id') | list }}"


def log_of(root: Path) -> Path:
    return root / ".hankweave" / "sentinels" / "calls.jsonl"


def asked(root: Path) -> ModelRouter:
    """Models that answer a run in ``root`` and have it logged, as the providers would."""
    log = CallLog(log_of(root), redactor=NO_SECRETS, on_failure=lambda error: pytest.fail(str(error)))
    remote = ScriptedRemote(lambda request: f"{request.labels['sentinelId']} on {request.labels['triggerNumber']}")
    return ModelRouter({}, redactor=NO_SECRETS, clock=SystemClock(), call_log=log, remote=remote)


def sentinels_of(hank: Path) -> Mapping[str, Sequence[SentinelSource]]:
    return load_hank(hank).sentinels


def reports(root: Path) -> dict[str, bytes]:
    """The text reports; lines of the others say when a model had answered, which is the run's own."""
    folder = root / ".hankweave" / "sentinels" / "outputs"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.md")}


def without_sentinels(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [event.envelope() for event in events if not is_left_out(event)]


def codes(events: Sequence[Event]) -> list[str]:
    return [event.data["code"] for event in events if event.type == "info" and "code" in event.data]


def own_copy(hank: Path, folder: Path) -> Path:
    """The hank with sentinels that ask a provider, and prompts that say all that differs from run to run."""
    for path in filter(Path.is_file, hank.rglob("*")):
        copy = folder / path.relative_to(hank)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes().replace(b"builtin/digest", b"scripted/model"))
    return folder


@pytest.mark.parametrize("name", ["demo", "sentinel-sweep"])
async def test_a_call_log_makes_a_recorded_run_fire_and_report_as_it_did(
    fixtures: Path, tmp_path: Path, name: str
) -> None:
    hank = own_copy(fixtures / name, tmp_path / "hank")
    ran = await run_here(hank, tmp_path / "run", model=asked(tmp_path / "run"))
    model = CallLogClient(log_of(ran.root), redactor=NO_SECRETS)
    result = await replayed(ran.root, tmp_path / "out", sentinels_of(hank), model=model)
    assert result.errors == []
    assert fires_of(journal(result.out.root)) == fires_of(ran.events)
    assert reports(result.out.root) == reports(ran.root)
    assert without_sentinels(journal(result.out.root)) == without_sentinels(ran.events)
    assert result.left_out == len(ran.events) - result.events


async def test_the_same_replay_twice_has_the_same_bytes(fixtures: Path, tmp_path: Path) -> None:
    hank = own_copy(fixtures / "demo", tmp_path / "hank")
    run = tmp_path / "run"
    await run_here(hank, run, model=asked(run))
    for name in ("one", "two"):
        model = CallLogClient(log_of(run), redactor=NO_SECRETS)
        await replayed(run, tmp_path / name, sentinels_of(hank), model=model)
    assert written(tmp_path / "one") == written(tmp_path / "two")


async def test_a_replay_of_a_replay_is_the_same_replay(fixtures: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    await run_here(fixtures / "demo", run)
    await replayed(run, tmp_path / "one", sentinels_of(fixtures / "demo"))
    await replayed(tmp_path / "one", tmp_path / "two", sentinels_of(fixtures / "demo"))
    one, two = journal(tmp_path / "one"), journal(tmp_path / "two")
    assert [event.envelope() for event in one[:-1]] == [event.envelope() for event in two[:-1]]  # the last one counts
    assert reports(tmp_path / "one") == reports(tmp_path / "two")


async def test_sentinels_are_skipped_unless_asked_for_and_the_journal_says_so(fixtures: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ran = await run_here(fixtures / "demo", run)
    result = await replayed(run, tmp_path / "out")
    events = journal(result.out.root)
    assert without_sentinels(events) == without_sentinels(ran.events)
    assert not any(event.type.startswith("sentinel.") for event in events)
    assert codes(events) == ["replay-begun", "replay-ended"]
    assert "--sentinels cassette" in events[0].data["message"]
    assert f"{result.left_out} events told of recorded sentinels" in events[-1].data["message"]


async def test_a_changed_prompt_is_an_error_that_shows_the_nearest_recorded_call(tmp_path: Path) -> None:
    asks = source("asks", model="scripted/model", userPromptText="What of {{ it.events[0].data.message }}?")
    path = write_journal(tmp_path / "j", [event(1, message="this")])
    (tmp_path / "recorded" / ".hankweave" / "sentinels").mkdir(parents=True)
    await replayed(path, tmp_path / "first", {"*": [asks]}, model=asked(tmp_path / "recorded"))
    changed = source("asks", model="scripted/model", userPromptText="And what of {{ it.events[0].data.message }}?")
    model = CallLogClient(log_of(tmp_path / "recorded"), redactor=NO_SECRETS)
    result = await replayed(path, tmp_path / "second", {"*": [changed]}, model=model)
    (error,) = result.errors
    assert error.error_type == "llm-call-failed"
    assert "-What of this?\n+And what of this?" in error.message


async def test_each_codon_has_its_own_sentinels(tmp_path: Path) -> None:
    lines = [
        transition(1, "RunStarted"),
        transition(2, "CodonStarted", codonId="one"),
        event(3, "info", at(1)),
        event(4, "codon.completed", at(2), codonId="one"),
        transition(5, "CodonStarted", at(3), codonId="two#0"),
        event(6, "info", at(4)),
        transition(7, "CodonStarted", at(5), codonId="three"),
        event(8, "info", at(6)),
        transition(9, "RunCompleted", at(7)),
    ]
    path = write_journal(tmp_path / "j", lines)
    attached = {"one": [source("of-one"), source("of-both")], "two": [source("of-both")]}
    result = await replayed(path, tmp_path / "out", attached)
    assert [(s.sentinel_id, s.codon_id, s.fired) for s in result.sentinels] == [
        ("of-one", "one", 1),
        ("of-both", "one", 1),
        ("of-both", "two#0", 1),
    ]
    assert result.codons == ["one", "two#0", "three"]


async def test_everything_at_an_instant_happens_in_the_order_of_attachment(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1, "error", at(0)), event(2, "info", at(5)), event(3, "info", at(900))])
    quiet = {"strategy": "debounce", "milliseconds": 100}
    # The second one's timer is set first; both are due at the same instant.
    attached = [
        source("first", execution=quiet),
        source("second", execution=quiet | {"milliseconds": 105}, trigger=on("error")),
    ]
    result = await replayed(path, tmp_path / "out", {"*": attached})
    said = [
        (event.type.removeprefix("sentinel."), event.data["sentinelId"], event.timestamp)
        for event in journal(result.out.root)
        if event.type in {"sentinel.triggered", "sentinel.output"}
    ]
    assert said[:4] == [
        ("triggered", "first", at(105)),
        ("output", "first", at(105)),
        ("triggered", "second", at(105)),
        ("output", "second", at(105)),
    ]


async def test_however_many_fires_an_instant_has_no_queue_overflows(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(number) for number in range(250)])
    result = await replayed(path, tmp_path / "out", {"*": [source(), source("other")]})
    assert result.fires == {"narrator": 250, "other": 250}
    assert [summary.dropped_triggers for summary in result.sentinels] == [0, 0]


async def test_a_killed_run_is_replayed_to_where_it_was_killed(fixtures: Path, tmp_path: Path) -> None:
    ran = await run_here(fixtures / "demo", tmp_path / "run")
    last = ran.of("tool.result")[2]
    cut = killed_after(ran, tmp_path / "cut", last)
    result = await replayed(cut.root, tmp_path / "out", sentinels_of(fixtures / "demo"))
    events = journal(result.out.root)
    assert without_sentinels(events)[-1] == last.envelope()
    before = {fire[:3] for fire in fires_of(cut.events)}
    assert before <= {fire[:3] for fire in fires_of(events)}
    assert {event.data["reason"] for event in events if event.type == "sentinel.unloaded"} == {"shutdown"}


async def test_damaged_lines_are_counted_and_told(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1), event(2), event(2)])
    path.write_bytes(b"no event\n" + path.read_bytes() + b'{"torn')
    result = await replayed(path, tmp_path / "out", {"*": [source()]})
    assert (result.events, result.bad_lines, result.replayed, result.fires) == (2, 1, 1, {"narrator": 2})
    last = journal(result.out.root)[-1].data["message"]
    assert "1 lines became no event" in last
    assert "1 events were copies" in last


async def test_an_interrupted_replay_leaves_a_whole_journal_that_says_so(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(number, "info", at(number)) for number in range(1_000)])
    with anyio.CancelScope() as scope:

        def stop(progress: Progress) -> None:
            if progress.events:
                scope.cancel()

        await replayed(path, tmp_path / "out", {"*": [source()]}, on_progress=stop)
    assert scope.cancelled_caught
    events = journal(tmp_path / "out")
    assert codes(events) == ["replay-begun", "replay-interrupted"]
    assert events[-2].data["reason"] == "shutdown"


async def test_a_recording_that_breaks_off_is_an_error_and_the_journal_says_so(tmp_path: Path) -> None:
    whole = gzip.compress(
        write_journal(tmp_path / "j", [event(n, message=str(n) * 99) for n in range(500)]).read_bytes()
    )
    path = tmp_path / "j.gz"
    path.write_bytes(whole[: len(whole) // 2])
    recording = open_source(str(path), tmp_path, agent="journal")
    with pytest.raises(UsageError, match="cannot be read"):
        await replayed(recording, tmp_path / "out")
    assert codes(journal(tmp_path / "out"))[-1] == "replay-interrupted"


async def test_at_real_speed_it_takes_as_long_as_it_took(tmp_path: Path) -> None:
    path = write_journal(
        tmp_path / "j", [event(1, "info", at(0)), event(2, "info", at(2_000)), event(3, "info", at(2_500))]
    )
    clock = VirtualClock()
    seen: list[float] = []

    async def play() -> None:
        quiet = source(execution={"strategy": "debounce", "milliseconds": 700})
        await replayed(path, tmp_path / "out", {"*": [quiet]}, speed="real", clock=clock)
        seen.append(clock.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play)
        await clock.advance(2.4)
        fired = [event.data["at"] for event in journal(tmp_path / "out") if event.type == "sentinel.triggered"]
        assert (fired, seen) == ([at(700)], [])
        await clock.advance(0.2)
    assert seen == [2.5]


async def test_progress_tells_events_and_bytes(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(number) for number in range(1_000)])
    told: list[Progress] = []
    await replayed(path, tmp_path / "out", on_progress=told.append)
    size = path.stat().st_size
    assert told[-1] == Progress(tmp_path / "out", 1_000, size, size)
    assert [one.events for one in told] == sorted(one.events for one in told)


@pytest.mark.parametrize("name", ["claude-success", "codex-success", "pi-success"])
async def test_an_agents_stream_is_replayed_as_one_codon(fixtures: Path, tmp_path: Path, name: str) -> None:
    recording = open_source(str(fixtures / "agent-streams" / f"{name}.jsonl"), tmp_path, codon="build")
    every = source(trigger=on("codon.started", "codon.completed"), userPromptText=PROMPT)
    result = await replayed(recording, tmp_path / "out", {"build": [every]})
    assert (result.fires, result.codons) == ({"narrator": 2}, ["build"])


async def test_what_is_in_use_is_not_written_over(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1)])
    with pytest.raises(UsageError, match="exists already"):
        await replayed(path, tmp_path)
    (tmp_path / "empty").mkdir()
    assert (await replayed(path, tmp_path / "empty")).events == 1


async def test_without_drains_what_is_held_is_named_as_abandoned(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1)])
    holds = source(execution={"strategy": "count", "threshold": 5})
    result = await replayed(path, tmp_path / "out", {"*": [holds]}, drain=False)
    assert (result.fires, [error.error_type for error in result.errors]) == ({}, ["abandoned"])


async def test_a_codon_is_told_to_prompts_as_when_it_was_recorded(fixtures: Path, tmp_path: Path) -> None:
    tells = {
        "id": "tells",
        "name": "T",
        "model": "scripted/model",
        "userPromptText": PROMPT,
        "trigger": on("*"),
        "execution": {"strategy": "count", "threshold": 4},
    }
    agent = f"recorded:{fixtures / 'agent-streams' / 'claude-success.jsonl'}"
    step = codon("build", agent=agent, description="Make it.", sentinels=[{"sentinelConfig": tells}])
    hank = write_hank(tmp_path / "hank", step)
    ran = await run_here(hank, tmp_path / "run", model=asked(tmp_path / "run"))
    model = CallLogClient(log_of(ran.root), redactor=NO_SECRETS)
    result = await replayed(ran.root, tmp_path / "out", sentinels_of(hank), model=model)
    assert result.errors == []
    assert fires_of(journal(result.out.root)) == fires_of(Ran(ran.root).events)
