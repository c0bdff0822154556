"""The grand tour: one hank with everything in it, carried out by the real command from recorded agents.

The first process waits before each codon: two are let go, the second is rolled back, the run is stopped. The second
process resumes it and does all the rest: the second codon again, a loop of three iterations, a retry, an ignored
failure, a budget that trips, an extension. Six sentinels of all four strategies watch, and fire the same in a replay.
"""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.cli import Cli
from tests.support.golden import FOLDER, assert_golden, assert_golden_files, cleaner, normalised
from tests.support.laws import transition
from tests.support.replays import fires_of, journal, replayed
from tests.support.runs import Ran, until

from hankwatch.events.catalogue import OPEN_TYPES
from hankwatch.hank.load import load_hank

NAME = "grand-tour"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    (tmp_path / "home").mkdir()
    return Cli(tmp_path / "home", tmp_path)


def take_the_tour(cli: Cli, hank: Path) -> Ran:
    ran = Ran(cli.cwd / "execution")
    arguments = ("run", hank, "--execution", ran.root, "--output", cli.cwd / "out", "--quiet")
    with cli.start(*arguments, "--no-autostart") as process:
        try:
            for number, orders in enumerate([["next"], ["next"], ["checkpoints", "rollback survey"], ["stop"]], 1):
                until(partial(_waits, process, ran, number))
                for order in orders:
                    assert cli("control", "execution", *order.split()).code == 0
            assert process.wait(timeout=30) == 1, "a stopped run has failed"
        finally:
            process.kill()
    with cli.start(*arguments, "--resume") as process:
        _, complaints = process.communicate(timeout=60)
        assert (process.returncode, complaints) == (0, "")
    return ran


def _waits(process: "subprocess.Popen[str]", ran: Ran, times: int) -> bool:
    assert process.poll() is None, process.communicate()
    return ran.journal.exists() and ran.journal.read_bytes().count(b'"type":"server.idle"') == times


def reports(ran: Ran, clean: Callable[[Any], Any]) -> dict[str, str]:
    """Every report file by sentinel and name, as ``clean`` leaves it."""
    plans = {event.data["sentinelId"]: event.data["report"] for event in ran.of("sentinel.loaded")}
    paths = [
        (sentinel_id, ran.root / path)
        for sentinel_id, plan in plans.items()
        for path in (plan["logFile"], plan.get("lastValueFile"))
        if path is not None
    ]
    return {f"{sentinel_id}/{path.name}": _cleaned(path, clean) for sentinel_id, path in paths}


def _cleaned(path: Path, clean: Callable[[Any], Any]) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return "".join(json.dumps(clean(json.loads(line)), ensure_ascii=False) + "\n" for line in text.splitlines())
    return str(clean(text))


@pytest.mark.slow
@pytest.mark.timeout(150)  # nine processes of the command and fifteen agents
def test_the_grand_tour_leaves_the_journal_and_the_reports_it_always_leaves(
    cli: Cli, fixtures: Path, tmp_path: Path
) -> None:
    ran = take_the_tour(cli, fixtures / NAME)
    events = ran.events
    run_ids = [event.data["runId"] for event in events if transition(event) == "RunStarted"]
    names = {run_id: f"<run {number}>" for number, run_id in enumerate(run_ids, 1)} | {str(ran.root): "<execution>"}
    assert_golden(NAME, normalised(events, names))
    assert_golden_files(f"{NAME}-reports", reports(ran, cleaner(events, names)))
    outputs = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert outputs.keys() == {"fizz.py", "fizz-1.py", "fizz-again.py"}
    assert outputs["fizz-again.py"] == outputs["fizz-1.py"] == outputs["fizz.py"] + _kit(fixtures)
    anyio.run(partial(replayed, ran.journal, tmp_path / "replayed", load_hank(fixtures / NAME).sentinels))
    assert fires_of(journal(tmp_path / "replayed")) == fires_of(events)


def _kit(fixtures: Path) -> str:
    return (fixtures / NAME / "kit" / "buzz.txt").read_text(encoding="utf-8")


def test_every_open_event_type_stands_in_the_golden_journal() -> None:
    golden = (FOLDER / f"{NAME}.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["type"] for line in golden} >= OPEN_TYPES
    assert len(OPEN_TYPES) == 27
