"""Stops: the first signal ends a run in order within its budget, the second at once, and nothing stays behind (A10, A11)."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.hanks import codon, sentinel
from tests.support.laws import moved_to, transition
from tests.support.model_server import Answer, model_server
from tests.support.runs import HANKWATCH, Ran, command, is_alive, journaled, stand_in, until, write_hank

from hankwatch.app import LiveRun, open_run
from hankwatch.cli.stops import AT_ONCE_S
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.processes.tree import marked_pids
from hankwatch.testing import ScriptedModel, hang

BUDGET_S = 3
"""The smallest the settings allow."""
MARGIN_S = 1.0
"""For two busy cores."""
STUBBORN = [sys.executable, str(Path(__file__).parent.parent / "support" / "stubborn_run.py")]
HUNG = [sys.executable, str(Path(__file__).parent.parent / "support" / "hung_run.py")]
INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
SPOKE = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "hello"}]}}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
HANGS: Sequence[Any] = (["line", INIT], ["line", SPOKE], ["hang"])
ENDS: Sequence[Any] = (["line", INIT], ["line", SPOKE], ["line", RESULT], ["until_eof"])


@dataclass(frozen=True, slots=True)
class Case:
    """A hank, its agent, and where it runs."""

    hank: Path
    environ: dict[str, str]
    root: Path


def case(tmp_path: Path, *score: Any, sentinels: int = 1, model: str = "builtin/digest") -> Case:
    """Codons ``one`` and ``two``; the first is watched by sentinels that fire at every message."""
    entries = [
        {"sentinelConfig": sentinel(f"s{n}", model=model, trigger={"type": "event", "on": ["assistant.action"]})}
        for n in range(sentinels)
    ]
    config = f"[run]\nstop_budget_s = {BUDGET_S}\n[sentinel]\nmax_concurrent_calls = 1\n"
    hank = write_hank(
        tmp_path / "hank", codon("one", sentinels=entries), codon("two"), files={"hankwatch.toml": config}
    )
    return Case(hank, {**stand_in(tmp_path / "agent", *score).environ, "HOME": str(tmp_path)}, tmp_path / "run")


@contextmanager
def running(case: Case, *, argv: Sequence[str] = HANKWATCH) -> Iterator[subprocess.Popen[bytes]]:
    with command("run", case.hank, "-e", case.root, environ=case.environ, cwd=case.hank, argv=argv) as child:
        yield child
    lock = json.loads((case.root / ".hankweave" / "runtime.lock").read_text())
    assert marked_pids(lock["run"]) == [], "no process of the run is left"


def ended(child: subprocess.Popen[bytes], within_s: float) -> int:
    """The exit code, once it has ended."""
    began = time.monotonic()
    child.communicate(timeout=within_s + 5)
    assert time.monotonic() - began < within_s
    assert child.returncode is not None
    return child.returncode


def check_stopped(ran: Ran) -> None:
    """One codon, ended in order, and the run after it."""
    events = ran.events
    (completed,) = (event for event in events if event.type == "codon.completed")
    assert completed.data["success"] is False
    assert completed.data["failureReason"]["message"] == "stopped by request"
    assert {event.data["reason"] for event in events if event.type == "sentinel.unloaded"} == {"shutdown"}
    assert transition(events[-1]) == "RunFailed"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_ends_the_run_in_order(tmp_path: Path, number: signal.Signals) -> None:
    it = case(tmp_path, *HANGS)
    with running(it) as child:
        until(lambda: journaled(it.root, "assistant.action"))
        child.send_signal(number)
        assert ended(child, BUDGET_S + MARGIN_S) == 130
    check_stopped(Ran(it.root))


@pytest.mark.slow
def test_a_stop_before_the_first_line_completes_the_codon_too(tmp_path: Path) -> None:
    it = case(tmp_path, ["hang"])
    with running(it) as child:
        until(lambda: journaled(it.root, "sentinel.loaded"))
        child.terminate()
        assert ended(child, BUDGET_S + MARGIN_S) == 130
    check_stopped(Ran(it.root))
    assert Ran(it.root).of("codon.started") == []


@pytest.mark.slow
def test_a_stubborn_agent_and_its_grandchildren_end_within_the_budget(tmp_path: Path) -> None:
    pid_file = tmp_path / "grandchild"
    it = case(tmp_path, ["ignore", "SIGTERM"], ["children", str(pid_file)], *HANGS)
    with running(it) as child:
        until(lambda: journaled(it.root, "assistant.action"))
        child.terminate()
        assert ended(child, BUDGET_S + MARGIN_S) == 130
    check_stopped(Ran(it.root))
    until(lambda: not is_alive(int(pid_file.read_text())))


@pytest.mark.slow
def test_the_second_signal_ends_the_run_at_once_without_orphans(tmp_path: Path) -> None:
    pid_file = tmp_path / "grandchild"
    it = case(tmp_path, ["ignore", "SIGTERM"], ["children", str(pid_file)], *HANGS)
    with running(it) as child:
        until(lambda: journaled(it.root, "assistant.action"))
        child.terminate()
        assert child.stdout is not None
        while b"Stopping" not in child.stdout.readline():
            pass
        child.terminate()
        assert ended(child, 0.5 + MARGIN_S) == 130
    assert not is_alive(int(pid_file.read_text()))
    assert Ran(it.root).of("codon.completed") == []
    assert {event.data["reason"] for event in Ran(it.root).of("sentinel.unloaded")} == {"shutdown"}


@pytest.mark.slow
@pytest.mark.timeout(60)  # a provider's library is imported first
def test_hung_calls_behind_one_slot_are_given_up_and_named(tmp_path: Path) -> None:
    with model_server(default=Answer(hang=True)) as server:
        it = case(tmp_path, *ENDS, sentinels=3, model="openai/gpt-4o-mini")
        it.environ.update(OPENAI_API_KEY="sk-test-0123456789", OPENAI_API_BASE=server.url)
        with running(it) as child:
            until(lambda: journaled(it.root, "sentinel.triggered") and server.arrived.is_set(), within_s=40)
            child.terminate()
            assert ended(child, BUDGET_S + MARGIN_S) == 130
    abandoned = [event for event in Ran(it.root).of("sentinel.error") if event.data["errorType"] == "abandoned"]
    assert {event.data["sentinelId"] for event in abandoned} == {"s0", "s1", "s2"}
    assert len(server.bodies) <= 1
    # The agent had succeeded before: the stop takes nothing away from it.
    assert Ran(it.root).completed()["success"] is True


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
def test_a_callback_that_swallows_its_cancellation_cannot_hold_the_process(tmp_path: Path, signals: int) -> None:
    it = case(tmp_path, *HANGS)
    with running(it, argv=STUBBORN) as child:
        until(lambda: journaled(it.root, "sentinel.triggered"))
        child.terminate()
        if signals == 2:
            until(lambda: journaled(it.root, "RunFailed"))
            child.terminate()
        assert ended(child, MARGIN_S + (BUDGET_S if signals == 1 else 1.5)) == 130
    if signals == 1:
        check_stopped(Ran(it.root))
        (abandoned,) = Ran(it.root).of("sentinel.error")
        assert abandoned.data["errorType"] == "abandoned"


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
def test_a_loop_that_stands_still_cannot_hold_the_process_or_its_children(tmp_path: Path, signals: int) -> None:
    pid_file = tmp_path / "grandchild"
    it = case(tmp_path, ["ignore", "SIGTERM"], ["children", str(pid_file)], *HANGS)
    it.environ["TMPDIR"] = str(tmp_path)
    with running(it, argv=HUNG) as child:
        until(lambda: any(tmp_path.glob("tmp*/fifo")))
        for number in (signal.SIGTERM, signal.SIGINT)[:signals]:  # two of the same kind at once could become one
            child.send_signal(number)
        assert ended(child, MARGIN_S + (BUDGET_S if signals == 1 else AT_ONCE_S)) == 130
    assert not is_alive(int(pid_file.read_text()))


async def stopped_here(case: Case, model: ScriptedModel, when: Callable[[Event], bool]) -> tuple[Ran, float]:
    """Stop a run of this process at the first event for which ``when`` holds; how long it then took to end, in seconds."""
    options, began = RunOptions(case.hank, execution=case.root), 0.0
    reached = anyio.Event()

    async def stop(live: LiveRun) -> None:
        nonlocal began
        await reached.wait()
        began = time.monotonic()
        live.stop()
        live.stop()

    async with open_run(options, environ=case.environ, model_client=model) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(lambda event: reached.set() if when(event) else None, name="test")
        tasks.start_soon(stop, live)
        await live.carry_out()
    return Ran(case.root), time.monotonic() - began


@pytest.mark.slow
async def test_a_stop_while_sentinels_finish_gives_them_the_rest_of_the_budget(tmp_path: Path) -> None:
    it = case(tmp_path, *ENDS)
    ran, took_s = await stopped_here(it, ScriptedModel(hang()), lambda event: moved_to(event) == "completing-sentinels")
    assert 0.5 < took_s < BUDGET_S
    assert ran.completed()["success"] is True
    (abandoned,) = ran.of("sentinel.error")
    assert abandoned.data["triggerNumbers"] == [1]
    assert [transition(event) for event in ran.events][-1] == "RunFailed"
    assert ran.of("codon.started")[-1].data["codonId"] == "one"


async def test_what_sentinels_can_finish_within_the_budget_is_finished(tmp_path: Path) -> None:
    it, model = case(tmp_path, *HANGS), ScriptedModel("Seen.")
    ran, _ = await stopped_here(it, model, lambda event: event.type == "assistant.action")
    assert "Seen." in ran.report("s0")
    check_stopped(ran)


async def test_a_stop_before_the_agent_is_started_starts_none(tmp_path: Path) -> None:
    it = case(tmp_path, *HANGS)
    options = RunOptions(it.hank, execution=it.root)
    async with open_run(options, environ=it.environ, model_client=ScriptedModel()) as live:
        live.stream.subscribe(lambda event: live.stop() if event.type == "sentinel.loaded" else None, name="test")
        result = await live.carry_out()
    check_stopped(Ran(it.root))
    assert [codon.status for codon in result.record.codons] == ["failed"]
    assert not (tmp_path / "agent" / "seen.json").exists()


async def test_a_stop_between_codons_starts_no_further_one(tmp_path: Path) -> None:
    it = case(tmp_path, *ENDS)
    options = RunOptions(it.hank, execution=it.root)
    async with open_run(options, environ=it.environ, model_client=ScriptedModel()) as live:
        live.stream.subscribe(lambda event: live.stop() if event.type == "state.snapshot" else None, name="test")
        result = await live.carry_out()
    assert (result.success, result.reason) == (False, "stopped")
    assert Ran(it.root).completed()["success"] is True


AT_IMPORT = """
import os, sys
class Signals:
    def find_spec(self, name, path=None, target=None):
        if name == "hankwatch.app":
            os.kill(os.getpid(), int(sys.argv.pop()))
sys.meta_path.insert(0, Signals())
from hankwatch.cli.main import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_before_the_command_could_listen_is_an_interruption_too(
    tmp_path: Path, number: signal.Signals
) -> None:
    it = case(tmp_path, *ENDS)
    argv = [sys.executable, "-c", AT_IMPORT]
    with command("run", it.hank, "-e", it.root, str(int(number)), environ=it.environ, cwd=it.hank, argv=argv) as child:
        assert child.communicate(timeout=10) == (b"", b"")
    assert child.returncode == 130
    assert not it.root.exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_signal_at_any_moment_leaves_a_whole_journal_and_no_process(tmp_path: Path, seed: int) -> None:
    it = case(tmp_path, *ENDS)
    with command("run", it.hank, "-e", it.root, environ=it.environ, cwd=it.hank) as child:
        time.sleep(random.Random(seed).uniform(0.3, 1.5))
        child.terminate()
        child.communicate(timeout=BUDGET_S + 10)
    # Before the interpreter has come to the command, a signal ends it as it ends any process.
    assert child.returncode in {130, -signal.SIGTERM, 0}
    lock = it.root / ".hankweave" / "runtime.lock"
    if lock.exists() and lock.read_text():
        assert marked_pids(json.loads(lock.read_text())["run"]) == []
        assert Ran(it.root).events is not None


NOISY: Sequence[Any] = [
    {"type": "assistant", "message": {"id": f"m{n}", "content": [{"type": "text", "text": "x" * 120}]}}
    for n in range(1_000)
]


@pytest.mark.slow
def test_a_terminal_that_nobody_reads_holds_up_neither_run_nor_stop(tmp_path: Path) -> None:
    it = case(
        tmp_path, ["line", INIT], *[["line", line] for line in NOISY], ["line", RESULT], ["until_eof"], sentinels=0
    )
    with running(it) as child:
        until(lambda: journaled(it.root, "RunCompleted"))
        child.terminate()
        child.wait(AT_ONCE_S + MARGIN_S)
        assert child.returncode == 130
    assert Ran(it.root).events


@pytest.mark.slow
def test_a_slow_reader_gets_every_line(tmp_path: Path) -> None:
    it = case(
        tmp_path, ["line", INIT], *[["line", line] for line in NOISY], ["line", RESULT], ["until_eof"], sentinels=0
    )
    with running(it) as child:
        until(lambda: journaled(it.root, "RunCompleted"))
        shown, _ = child.communicate(timeout=10)
    assert child.returncode == 0
    assert shown.count(b"xxx") > 2 * len(NOISY) - 10
    assert b"succeeded" in shown
