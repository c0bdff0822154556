"""``hankwatch control`` beside a live run: answered by it, refused without one."""

import json
from collections.abc import Iterator

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon, hank
from tests.support.live import LiveRun, live_run
from tests.support.runs import until


@pytest.fixture
def live(cli: Cli) -> Iterator[LiveRun]:
    with live_run(cli) as run:
        until(lambda: b"codon.started" in run.journal.read_bytes())
        yield run


def test_a_skipped_codon_is_skipped_and_the_run_ends_well(cli: Cli, live: LiveRun) -> None:
    done = cli("control", "execution", "skip")
    assert (done.code, done.err) == (0, "")
    assert "skipped" in done.out
    assert live.process.wait(timeout=15) == 0


def test_a_stopped_run_ends_in_order(cli: Cli, live: LiveRun) -> None:
    done = cli("control", "execution", "stop", "--json")
    assert done.code == 0
    assert (done.json["type"], done.json["data"]["code"]) == ("info", "command-done")
    assert live.process.wait(timeout=15) == 1
    assert list((cli.cwd / "execution" / ".hankweave" / "commands").iterdir()) == []


def test_what_the_run_refuses_exits_1_with_its_reason(cli: Cli, live: LiveRun) -> None:
    assert "waits for nothing" in cli.refused("control", "execution", "next", code="order-refused", exit_code=1).err
    cli.refused("control", "execution", "rollback", "last", code="order-refused", exit_code=1)
    answer = cli("control", "execution", "rollback", "last-success", "--json")
    assert (answer.code, answer.json["data"]["code"]) == (1, "command-refused")
    assert "0 checkpoint(s)" in cli("control", "execution", "checkpoints").out
    assert live.process.poll() is None


def test_a_hostile_file_is_set_aside_and_the_run_goes_on(cli: Cli, live: LiveRun) -> None:
    folder = cli.cwd / "execution" / ".hankweave" / "commands"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"id": "a", "run": "other", "command": "skip"}))
    (folder / "b.json").symlink_to("/etc/passwd")
    cli.refused("control", "execution", "next", code="order-refused", exit_code=1)  # taken behind them
    assert [path.name for path in folder.rglob("*")] == ["refused", "b.json"]
    live.let_end()
    assert live.process.wait(timeout=15) == 0


@pytest.mark.parametrize(
    "arguments",
    [("execution", "bogus"), ("execution", "rollback"), ("execution", "skip", "target"), ("nothing", "skip")],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, arguments: tuple[str, ...]) -> None:
    (cli.cwd / "execution" / ".hankweave").mkdir(parents=True)
    done = cli("control", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "hint: " in done.err


def test_an_ended_run_takes_no_commands(looker: Cli) -> None:
    assert "no run is live" in looker.refused("control", "latest", "skip", code="run-not-live").err


def test_a_stopped_run_says_how_to_go_on_and_resumes_where_the_hank_ran_last(cli: Cli) -> None:
    lines = '{"type":"system","subtype":"init","session_id":"s"}\n', '{"type":"result","subtype":"success"}\n'
    (cli.cwd / "agent").write_text(lines[0])
    (cli.cwd / "hank.json").write_text(json.dumps(hank(codon("one", agent=f"exec:cat {cli.cwd}/agent"))))
    cli.refused("run", "--resume", code="usage")
    failed = cli("run")
    assert failed.code == 1
    (root,) = cli.executions.iterdir()
    assert f"`hankwatch run hank.json --execution {root} --resume` goes on with it." in failed.out
    (cli.cwd / "agent").write_text("".join(lines))
    assert cli("run", "--resume").code == 0
    assert list(cli.executions.iterdir()) == [root]
