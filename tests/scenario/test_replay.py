"""A recording once more, in virtual time, with its sentinels run anew (spec hank 5, design "How it runs" 5)."""

from pathlib import Path
from typing import Any

from tests.support.replays import fires_of, journal, replayed, written
from tests.support.runs import run_here

from hankwatch.bench.stepping import is_left_out
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event
from hankwatch.hank.load import load_hank
from hankwatch.llm.cassette import CallLogClient


def cassette(root: Path) -> CallLogClient:
    return CallLogClient(root / ".hankweave" / "sentinels" / "calls.jsonl", redactor=Redactor(enabled=False))


async def test_a_recorded_run_fires_again_as_it_did_and_says_the_same(fixtures: Path, tmp_path: Path) -> None:
    hank, run, out = fixtures / "demo", tmp_path / "run", tmp_path / "out"
    await run_here(hank, run)
    result = await replayed(run, out, load_hank(hank).sentinels, model=cassette(run))
    assert fires_of(journal(out)) == fires_of(journal(run))
    assert (result.error_count, sum(result.fires.values())) == (0, len(fires_of(journal(run))))
    for report in (run / ".hankweave" / "sentinels" / "outputs").rglob("*.md"):
        assert (out / report.relative_to(run)).read_bytes() == report.read_bytes()
    played = [event for event in journal(out) if not is_left_out(event)]
    assert [vars_of(event) for event in played] == [vars_of(e) for e in journal(run) if not is_left_out(e)]
    assert result.events == len(played)


def vars_of(event: Event) -> dict[str, Any]:
    return event.envelope()


async def test_the_same_replay_twice_has_the_same_bytes(fixtures: Path, tmp_path: Path) -> None:
    hank, run = fixtures / "demo", tmp_path / "run"
    await run_here(hank, run)
    for name in ("one", "two"):
        await replayed(run, tmp_path / name, load_hank(hank).sentinels, model=cassette(run))
    assert written(tmp_path / "one") == written(tmp_path / "two")
