"""``hankwatch watch``: the real command, a real engine process, a store in a home of its own (spec watches 5 to 7)."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli, Done
from tests.support.hanks import codon
from tests.support.runs import is_alive, stand_in, until, write_hank
from tests.support.watch_stores import store_url

from hankwatch.watches.database import Database
from hankwatch.watches.store import WatchStore

CONDITION = ("--condition", "rollout complete")
DONE = ("--command", "test -e done && echo v1.2.3", "--interval", "15s")


@contextmanager
def engine(cli: Cli, *arguments: object, **env: str) -> Iterator["subprocess.Popen[str]"]:
    with cli.start("watch", "engine", "--json", *arguments, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def create(cli: Cli, *arguments: object) -> dict[str, Any]:
    done = cli("watch", "create", *arguments, "--json")
    assert done.code == 0, done.err
    made: dict[str, Any] = done.json
    return made


def listed(cli: Cli, watch_id: str) -> dict[str, Any]:
    (watch,) = [one for one in cli("watch", "list", "--json").lines if one["id"] == watch_id]
    return dict(watch)


def refused(done: Done, code: str) -> str:
    assert (done.code, done.out) == (2, ""), done
    assert f"error[{code}]" in done.err
    return done.err


@pytest.mark.slow
def test_when_the_deploy_finishes_an_engine_tells_once(cli: Cli) -> None:
    watch = create(cli, *CONDITION, *DONE, "--id", "deploy")
    with engine(cli) as running:
        until(lambda: listed(cli, "deploy")["check_count"] == 1)
        (cli.cwd / "done").touch()
        assert cli("watch", "check", "deploy").code == 0
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=15)

    assert running.returncode == 130
    after = listed(cli, "deploy")
    assert (after["state"], after["fire_count"], after["home"]) == ("met", 1, watch["home"])
    assert "rollout complete" in cli("watch", "list").out.partition("Notifications")[2]


@pytest.mark.slow
def test_however_often_an_engine_is_told_to_stop_it_ends_what_it_started_and_gives_back_what_it_had(cli: Cli) -> None:
    hung = "trap '' TERM INT; setsid sleep 61 & echo $! > started; sleep 60"
    create(cli, *CONDITION, "--command", hung, "--id", "hung")
    with engine(cli) as running:
        until(lambda: (cli.cwd / "started").is_file() and (cli.cwd / "started").read_text().endswith("\n"))
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            running.send_signal(number)
        running.communicate(timeout=15)

    assert running.returncode == 130
    assert not is_alive(int((cli.cwd / "started").read_text()))
    database = Database(str(cli.home / ".local/state/hankwatch/watches.db"))
    try:
        assert WatchStore(database).take_one("hung", datetime.now(UTC), lease_s=lambda _: 1.0) is not None
    finally:
        database.close()


def test_without_an_engine_the_list_says_what_to_run(cli: Cli) -> None:
    create(cli, *CONDITION, *DONE)

    done = cli("watch", "list")

    assert "not polled" in done.out
    assert "hankwatch watch engine" in done.out


def test_an_identical_watch_is_the_same_one(cli: Cli) -> None:
    first, second = create(cli, *CONDITION, *DONE), create(cli, *CONDITION, *DONE)

    assert (first["is_new"], second["is_new"]) == (True, False)
    assert first["id"] == second["id"]


def test_a_checks_exit_code_says_whether_it_can_still_come_true(cli: Cli) -> None:
    create(cli, *CONDITION, "--command", "exit $(cat code)", "--id", "deploy", "--repeat")
    codes = {}
    for code in (1, 75, 0, 2):
        (cli.cwd / "code").write_text(str(code), encoding="utf-8")
        codes[code] = cli("watch", "check", "deploy").code

    assert codes == {1: 0, 75: 1, 0: 0, 2: 1}
    assert refused(cli("watch", "check", "deploy"), "watch-invalid")


def test_an_edit_changes_only_what_is_named(cli: Cli) -> None:
    before = create(cli, *CONDITION, *DONE, "--id", "deploy", "--prompt", "Go.", "--stall-after", 3)

    after = cli("watch", "update", "deploy", "--interval", "1m", "--clear", "prompt", "--json").json

    changed = {name for name in before if name != "is_new" and before[name] != after[name]}
    assert changed == {"interval_s", "run_prompt"}
    assert (after["interval_s"], after["run_prompt"]) == (60.0, None)


def propose(cli: Cli, run: object) -> None:
    """Something that even an operator has to approve, since its kind says so."""
    create(
        cli,
        *("--condition", "the run is over", "--kind", "agent_watch", "--id", "run-over"),
        *("--check", "workflow.run.status@v1", "--arg", f"run={run}", "--arg", 'statuses=["completed"]'),
        *("--session", "main", "--action", "in_app", "--expires-in", "1h"),
    )


def test_a_proposal_that_is_rejected_is_never_checked(cli: Cli) -> None:
    propose(cli, "no-such-run")
    assert refused(cli("watch", "check", "run-over"), "watch-invalid")

    rejected = cli("watch", "reject", "run-over", "--json")

    assert (rejected.code, rejected.json["end_reason"], rejected.json["check_count"]) == (0, "rejected", 0)
    assert refused(cli("watch", "approve", "run-over"), "wrong-state")


def test_the_commands_work_on_postgresql(cli: Cli, tmp_path: Path) -> None:
    with store_url("postgresql", tmp_path) as url:
        env = {"HANKWATCH_WATCHES_STORE": url}
        armed = cli("watch", "create", *CONDITION, *DONE, "--id", "deploy", "--repeat", env=env)
        assert armed.code == 0, armed.err
        (cli.cwd / "done").touch()
        checked = cli("watch", "check", "deploy", "--json", env=env).json
        cancelled = cli("watch", "cancel", "deploy", "--json", env=env).json
        shown = cli("watch", "list", env=env).out

    assert (checked["fire_count"], cancelled["end_reason"]) == (1, "cancelled")
    assert "rollout complete" in shown.partition("Notifications")[2]
    assert not list(cli.home.rglob("watches.db"))


def test_a_proposal_is_approved_and_checked_at_once(cli: Cli) -> None:
    execution = cli.demo()
    propose(cli, execution)
    assert listed(cli, "run-over")["status"] == "proposed"

    approved = cli("watch", "approve", "run-over", "--json")

    assert (approved.code, approved.json["state"]) == (0, "met")


def test_applying_a_set_twice_changes_nothing_and_a_smaller_one_cancels_the_rest(cli: Cli) -> None:
    def apply(*ids: str) -> Any:
        watches = [{"id": one, "condition": one, "verifier": {"type": "data", "path": f"{one}.json"}} for one in ids]
        (cli.cwd / "set.json").write_text(json.dumps({"watches": watches}), encoding="utf-8")
        return cli("watch", "apply", "set.json", "--owner", "deployer", "--json").json

    create(cli, *CONDITION, *DONE, "--id", "mine")
    assert apply("a", "b") == {"armed": ["a", "b"], "kept": [], "cancelled": []}
    assert apply("a", "b") == {"armed": [], "kept": ["a", "b"], "cancelled": []}
    assert apply("b") == {"armed": [], "kept": ["b"], "cancelled": ["a"]}
    assert listed(cli, "mine")["status"] == "active"


def test_a_set_with_faults_is_refused_as_a_whole_with_their_lines(cli: Cli) -> None:
    (cli.cwd / "set.json").write_text(
        '{"watches": [\n'
        ' {"id": "a", "condition": "a", "verifier": {"type": "command", "command": "x"}},\n'
        ' {"id": "b", "condition": "b", "verifier": {"type": "check", "name": "nope"}, "interval_s": 1}]}',
        encoding="utf-8",
    )

    said = refused(cli("watch", "apply", "set.json", "--owner", "deployer"), "watch-invalid")

    assert "set.json:3:" in said
    assert "at /watches/1/verifier/name" in said
    assert "at /watches/1/interval_s" in said
    assert cli("watch", "list", "--json").lines == []


def test_a_request_may_come_from_stdin_and_is_held_to_its_schema(cli: Cli) -> None:
    (cli.cwd / "request.json").write_text(
        json.dumps({"condition": "x", "verifier": {"type": "time", "after": 3}}), encoding="utf-8"
    )
    with (cli.cwd / "request.json").open(encoding="utf-8") as file:
        done = cli("watch", "create", "-", stdin=file)

    said = refused(done, "unknown-key")
    assert "stdin:1:" in said
    assert "did you mean 'after_s'?" in said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "usage"),
        (CONDITION, "usage"),
        ((*CONDITION, "--command", "x", "--after", "3s"), "usage"),
        ((*CONDITION, "--after", "soon"), "usage"),
        ((*CONDITION, "--event", "tool.result"), "usage"),
        ((*CONDITION, "--command", "x", "--session", "main"), "usage"),
        ((*CONDITION, "--at", "2030-01-01T00:00:00"), "watch-invalid"),
        ((*CONDITION, "--command", "x", "--interval", "1s"), "watch-invalid"),
        ((*CONDITION, "--check", "nope"), "watch-invalid"),
        ((*CONDITION, "--command", "x", "--home", "nope"), "run-not-found"),
    ],
)
def test_what_cannot_be_armed_is_refused_and_leaves_nothing(cli: Cli, arguments: tuple[str, ...], code: str) -> None:
    refused(cli("watch", "create", *arguments), code)

    assert cli("watch", "list", "--json").out == ""


@pytest.mark.parametrize("command", ["show", "update", "cancel", "clear", "approve", "reject", "check"])
def test_a_watch_that_is_not_there_is_named(cli: Cli, command: str) -> None:
    more = ("--interval", "1m") if command == "update" else ()

    assert "'nope'" in refused(cli("watch", command, "nope", *more), "watch-not-found")


def test_text_of_the_watched_world_moves_no_terminal(cli: Cli) -> None:
    create(cli, *CONDITION, "--command", r"printf '\033[2J\033]0;owned\007 evil\nline'", "--id", "deploy")
    shown = [cli("watch", "check", "deploy").out, cli("watch", "list").out, cli("watch", "show", "deploy").out]

    assert not any("\x1b" in text or "\x07" in text for text in shown)
    assert any("evil line" in text for text in shown)


def test_a_command_gets_none_of_our_secrets(cli: Cli) -> None:
    create(cli, *CONDITION, "--command", "env > seen", "--id", "deploy")

    cli("watch", "check", "deploy", env={"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef", "PLAIN": "1"})

    seen = (cli.cwd / "seen").read_text(encoding="utf-8")
    assert "PLAIN=1" in seen
    assert "sk-ant-0123456789abcdef" not in seen


@pytest.mark.slow
@pytest.mark.parametrize("verifier", [("--document", "done", "--interval", "5s"), DONE], ids=["document", "command"])
def test_when_the_deploy_finishes_the_session_of_an_ended_run_does_the_smoke_test(
    cli: Cli, verifier: tuple[str, ...]
) -> None:
    agent = stand_in(
        cli.home / "agent",
        ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}],
        ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}],
        ["until_eof"],
    )
    env = {name: value for name, value in agent.environ.items() if name not in {"HOME", "LANG"}}
    root = cli.home / "execution"
    assert cli("run", write_hank(cli.cwd / "hank", codon()), "-e", root, "--headless", env=env).code == 0
    woken = ("--session", "one", "--prompt", "Run the smoke test.", "--home", root)
    create(cli, *CONDITION, *verifier, "--id", "deploy", *woken)
    for folder in (root, cli.cwd):  # a document is looked for in the execution, a command runs where it was armed
        (folder / "done").write_text("v1.2.3", encoding="utf-8")

    with engine(cli, root, **env):
        until(lambda: len(agent.calls()) == 2)
        until(lambda: [one["status"] for one in wakes(cli)] == ["delivered"])

    events = [json.loads(line) for line in (root / ".hankweave/events/events.jsonl").read_text().splitlines()]
    ended = [event["data"]["codonId"] for event in events if event["type"] == "codon.completed"]
    assert ended == ["one", "session:one"]
    prompt = agent.calls()[1]["stdin"]["message"]["content"][0]["text"]
    assert "Run the smoke test." in prompt
    assert "v1.2.3" in prompt


def wakes(cli: Cli) -> list[dict[str, Any]]:
    deliveries = cli("watch", "show", "deploy", "--json").json["deliveries"]
    return [one for one in deliveries if one["channel"] == "wake"]


def test_the_schema_of_watch_files_is_printed(cli: Cli) -> None:
    printed = cli("validate", "--print-schema", "watch").json

    assert {"WatchFile", "WatchSet"} <= set(printed["$defs"])


def test_a_file_of_watches_is_validated_like_every_other(cli: Cli) -> None:
    (cli.cwd / "set.json").write_text('{"watches": [\n {"id": "a", "condition": "a"}]}', encoding="utf-8")

    done = cli("validate", "set.json", "--json")

    assert done.code == 1
    assert [(one["pointer"], one["line"]) for one in done.json["diagnostics"]] == [("/watches/0/verifier", 2)]


def fires_of(cli: Cli, watch_id: str, path: Path, *texts: str) -> list[int]:
    """How often a watch has fired once a file held each of these texts."""
    counts = []
    for text in texts:
        path.write_text(text, encoding="utf-8")
        counts.append(cli("watch", "check", watch_id, "--json").json["fire_count"])
    return counts


def test_tell_me_whenever_the_treasury_changes(cli: Cli) -> None:
    treasury = cli.cwd / "treasury.json"
    create(cli, "--condition", "the treasury", "--document", treasury, "--pointer", "/gold", "--change", "--id", "gold")

    fires = fires_of(cli, "gold", treasury, '{"gold": 1}', '{"gold": 1, "iron": 2}', '{"gold": 3}', '{"gold": 1}')

    assert fires == [0, 0, 1, 2]
    assert listed(cli, "gold")["status"] == "active"


def test_every_time_a_pull_request_lands(cli: Cli) -> None:
    create(cli, "--condition", "a PR landed", "--command", "grep -q merged state", "--repeat", "--id", "pr")

    fires = fires_of(cli, "pr", cli.cwd / "state", "open", "merged", "merged", "open", "merged")

    assert fires == [0, 1, 1, 1, 2]
    assert "2×" in cli("watch", "list").out
