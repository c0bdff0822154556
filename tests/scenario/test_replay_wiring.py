"""``hankwatch.replay``: source, hank, call log and models found and put together (spec hank 5)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon
from tests.support.model_server import Answer, model_server
from tests.support.recordings import at, event, transition, write_journal
from tests.support.replays import journal, written
from tests.support.runs import environment, run_here, write_hank

import hankwatch
from hankwatch.core.errors import ConfigError, UsageError
from hankwatch.testing import ScriptedModel

LINES = [
    transition(1, "RunStarted"),
    transition(2, "CodonStarted", at(1), codonId="one", codonName="One"),
    event(3, "info", at(2), message="step one"),
    event(4, "info", at(3), message="and more"),
    event(5, "codon.completed", at(4), codonId="one"),
    transition(6, "RunCompleted", at(5)),
]


AGENT = 'exec:echo \'{"type": "result", "subtype": "success", "is_error": false}\''


def hank_with(folder: Path, **config: Any) -> Path:
    """A hank whose codon ``one`` has a sentinel that fires on every ``info``."""
    sentinel = {
        "id": "asks",
        "name": "Asks",
        "model": "openai/gpt-4o-mini",
        "userPromptText": "{{ it.codon.name }}: {{ it.events[0].data.message }}?",
        "trigger": {"type": "event", "on": ["info"]},
        "execution": {"strategy": "immediate"},
        "output": {"file": "answers.md"},
        **config,
    }
    return write_hank(folder, codon("one", agent=AGENT, sentinels=[{"sentinelConfig": sentinel}]))


def answers(root: Path) -> str:
    return (root / ".hankweave" / "sentinels" / "outputs" / "asks" / "answers.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(60)  # a provider's library is imported first
async def test_what_was_asked_live_is_answered_from_its_log_without_a_key_or_a_network(tmp_path: Path) -> None:
    hank, source = hank_with(tmp_path / "hank"), write_journal(tmp_path / "j.jsonl", LINES)
    with model_server(Answer("first"), Answer("second")) as server:
        environ = environment({"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-test-0123456789"})
        live = await hankwatch.replay(
            source, sentinels="live", hank=hank, out=tmp_path / "live", deterministic=True, environ=environ
        )
        assert len(server.prompts()) == 2
    assert (live.errors, live.fires) == ([], {"asks": 2})
    again = await hankwatch.replay(
        source,
        sentinels="cassette",
        calls=live.out.calls,
        hank=hank,
        out=tmp_path / "again",
        deterministic=True,
        environ=environment(),
    )
    assert (again.errors, again.fires) == ([], {"asks": 2})
    assert answers(again.out.root) == answers(live.out.root) == "\n---\nfirst\n\n---\nsecond\n"
    first, second = ([e.data for e in journal(r.out.root) if e.type == "sentinel.output"] for r in (live, again))
    assert first == second


async def test_two_deterministic_live_replays_have_the_same_bytes_but_for_what_was_measured(tmp_path: Path) -> None:
    hank, source = hank_with(tmp_path / "hank", model="builtin/digest"), write_journal(tmp_path / "j.jsonl", LINES)
    files = []
    for name in ("one", "two"):
        out = tmp_path / name
        await hankwatch.replay(source, sentinels="live", hank=hank, out=out, deterministic=True, environ=environment())
        found = written(out)
        del found[".hankweave/execution-meta.json"]  # says when it was made
        calls = ".hankweave/sentinels/calls.jsonl"
        found[calls] = re.sub(rb'"durationMs":\d+', b"", found[calls])
        files.append(found)
    assert files[0] == files[1]
    assert b'"startedAt":"2026-01-01T00:00:00.002Z"' in files[0][".hankweave/sentinels/calls.jsonl"]


async def test_a_run_brings_its_hank_and_its_call_log_along(fixtures: Path, tmp_path: Path) -> None:
    run = await run_here(fixtures / "demo", tmp_path / "run")
    result = await hankwatch.replay(
        run.root, sentinels="cassette", out=tmp_path / "out", environ=environment({"HOME": str(tmp_path)})
    )
    assert sum(result.fires.values()) == 13
    meta = json.loads((tmp_path / "out" / ".hankweave" / "execution-meta.json").read_text(encoding="utf-8"))
    assert meta["hankPath"] == str((fixtures / "demo" / "hank.json").resolve())
    assert meta["replayOf"] == str(run.journal)


async def test_a_hank_that_has_changed_since_is_told(tmp_path: Path) -> None:
    hank = hank_with(tmp_path / "hank", model="builtin/echo")
    run = await run_here(hank, tmp_path / "run")
    (hank / "hank.json").write_text((hank / "hank.json").read_text() + "\n")
    result = await hankwatch.replay(run.root, sentinels="cassette", out=tmp_path / "out", environ=environment())
    assert f"{hank / 'hank.json'} is not as it was when this ran" in result.notes


async def test_a_client_of_ones_own_answers(tmp_path: Path) -> None:
    source = write_journal(tmp_path / "j.jsonl", LINES)
    result = await hankwatch.replay(
        source,
        sentinels="live",
        hank=hank_with(tmp_path / "hank"),
        out=tmp_path / "out",
        environ=environment(),
        model_client=ScriptedModel("mine"),
    )
    assert answers(result.out.root) == "\n---\nmine\n\n---\nmine\n"


async def test_the_watchdog_of_the_hank_judges_an_agent_s_stream_and_only_tells(fixtures: Path, tmp_path: Path) -> None:
    trigger = {"type": "event", "on": ["watchdog.nudge"]}
    hank = hank_with(tmp_path / "hank", trigger=trigger, userPromptText="{{ it.events[0].data.trigger }}")
    whole = json.loads((hank / "hank.json").read_text())
    (hank / "hank.json").write_text(json.dumps({**whole, "watchdog": {"max_consecutive_errors": 2}}))
    model = ScriptedModel("mine")
    result = await hankwatch.replay(
        fixtures / "agent-streams" / "claude-loop.jsonl",
        sentinels="live",
        hank=hank,
        out=tmp_path / "out",
        environ=environment(),
        model_client=model,
    )
    nudges = [e.data["trigger"] for e in journal(tmp_path / "out") if e.type == "watchdog.nudge"]
    assert nudges[0] == "error_streak"
    assert result.fires["asks"] == len(nudges)
    assert [
        e for e in journal(tmp_path / "out") if e.type == "watchdog.nudge" and e.data.get("delivered") is False
    ] == []


async def test_a_faulty_hank_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source = write_journal(tmp_path / "j.jsonl", LINES)
    hank = write_hank(tmp_path / "hank", codon("one", nonsense=1))
    with pytest.raises(ConfigError):
        await hankwatch.replay(source, sentinels="live", hank=hank, out=tmp_path / "out", environ=environment())
    assert not (tmp_path / "out").exists()


async def test_a_hank_without_sentinels_is_refused(tmp_path: Path) -> None:
    source = write_journal(tmp_path / "j.jsonl", LINES)
    hank = write_hank(tmp_path / "hank", codon("one"))
    with pytest.raises(UsageError, match="has sentinels"):
        await hankwatch.replay(source, sentinels="live", hank=hank, out=tmp_path / "out", environ=environment())
