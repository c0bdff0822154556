"""``demo``, ``run`` and ``runs`` as processes: summaries, exit codes, what a failure leaves (spec cli)."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon, hank, sentinel

INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}
GOOD = {"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s"}
BAD = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "no", "session_id": "s"}


def write_hank(cli: Cli, *records: dict[str, Any], **fields: Any) -> Path:
    """A hank of one codon whose agent says these lines."""
    (cli.cwd / "agent.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    attached = [{"sentinelConfig": sentinel("observer", model="builtin/echo")}]
    whole = hank(codon("build", agent="recorded:agent.jsonl", sentinels=attached, **fields))
    (cli.cwd / "hank.json").write_text(json.dumps(whole))
    return cli.cwd / "hank.json"


def test_the_demo_ends_with_reports_and_a_table_that_names_them(cli: Cli) -> None:
    done = cli("demo")
    assert (done.code, done.err) == (0, "")
    (root,) = cli.executions.iterdir()
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if ".hankweave/sentinels/outputs/" in line}
    assert set(rows) == {"narrator", "error-streak", "tool-tally", "cost-window"}
    for row in rows.values():
        fired, failed, calls, cost, dropped, report = row[2:8]
        assert int(fired) == int(calls) > 0
        assert (failed, cost, dropped) == ("0", "$0.0000", "0")
        assert (root / report).stat().st_size > 0
    for command in ("hankwatch runs", "hankwatch tail latest", "hankwatch try "):
        assert command in done.out


def test_a_run_says_in_json_what_it_did(cli: Cli) -> None:
    done = cli("run", write_hank(cli, INIT, GOOD), "--json", "--execution", "out")
    assert done.code == 0
    assert (done.json["success"], done.json["execution"]) == (True, str(cli.cwd / "out"))
    (observer,) = done.json["sentinels"]
    assert (observer["sentinelId"], observer["fired"], observer["calls"]) == ("observer", 1, 1)
    assert Path(observer["report"]).stat().st_size > 0
    assert "codon.completed" in done.err  # text for people


def test_what_a_budget_left_undone_is_named_at_the_end(cli: Cli) -> None:
    write_hank(cli, INIT, {**GOOD, "total_cost_usd": 1.0})
    whole = hank(*(codon(name, agent="recorded:agent.jsonl") for name in ("build", "test", "ship")))
    (cli.cwd / "hank.json").write_text(json.dumps(whole))
    done = cli("run", "--max-cost", "0.5")
    assert done.code == 0
    assert "2 codon(s) skipped: test, ship" in done.out
    assert "1 codon(s) ended by a budget before the agent was done: build" in done.out
    assert "test not completed" in done.out
    told = cli("run", "--max-cost", "0.5", "--json")
    assert [(c["codonId"], c["status"]) for c in told.json["codons"]] == [
        ("build", "completed"),
        ("test", "skipped"),
        ("ship", "skipped"),
    ]


def test_a_failed_codon_exits_1(cli: Cli) -> None:
    done = cli("run", write_hank(cli, INIT, BAD))
    assert done.code == 1
    assert "failed" in done.out.splitlines()[-2]


def test_a_faulty_hank_exits_2_with_its_place_and_starts_nothing(cli: Cli) -> None:
    write_hank(cli, INIT, GOOD, modle="x")
    done = cli("run")
    assert (done.code, done.out) == (2, "")
    assert "hank.json:1:" in done.err
    assert "did you mean 'model'?" in done.err
    assert not cli.executions.exists()


def test_a_used_directory_takes_a_further_run_only_when_asked(cli: Cli) -> None:
    path = write_hank(cli, INIT, GOOD)
    assert cli("run", path, "--execution", "out").code == 0
    assert "--start-new" in cli.refused("run", path, "--execution", "out", code="usage").err
    assert cli("run", path, "--execution", "out", "--start-new").code == 0


def test_a_journal_that_cannot_be_written_ends_the_run_with_3(cli: Cli) -> None:
    path = write_hank(cli, INIT, GOOD)
    assert cli("run", path, "-q").code == 0  # compiles what is not yet: the limit would cut it in two, for everybody

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))

    done = cli("run", path, "-q", env={"PYTHONDONTWRITEBYTECODE": "1"}, preexec_fn=little_room)
    assert done.code == 3
    assert "error[journal-write-failed]: " in done.err
    assert "hint: " in done.err
    assert "Traceback" not in done.err


def test_runs_lists_what_ran_however_it_ended(cli: Cli) -> None:
    path = write_hank(cli, INIT, GOOD)
    base = cli.executions
    cli("run", path, "--execution", base / "1000-good")
    write_hank(cli, INIT, BAD)
    cli("run", path, "--execution", base / "2000-bad")
    crashed = base / "3000-crashed" / ".hankweave" / "events" / "events.jsonl"
    crashed.parent.mkdir(parents=True)
    lines = (base / "1000-good" / ".hankweave" / "events" / "events.jsonl").read_text().splitlines(keepends=True)
    crashed.write_text("".join(lines[:5]))
    (base / "4000-empty" / ".hankweave").mkdir(parents=True)
    (base / "5000-broken" / ".hankweave" / "events" / "events.jsonl").mkdir(parents=True)
    (base / "5000-broken" / ".hankweave" / "execution-meta.json").write_text("{")
    (base / "not-an-execution").mkdir()
    done = cli("runs", "--json")
    assert done.code == 0
    outcomes = {Path(line["execution"]).name: line["outcome"] for line in done.lines}
    assert outcomes == {
        "1000-good": "completed",
        "2000-bad": "failed",
        "3000-crashed": "crashed",
        "4000-empty": "empty",
        "5000-broken": "unreadable",
    }
    assert "5000-broken is unreadable: " in cli("runs").out


def test_without_runs_there_is_a_way_to_one(cli: Cli) -> None:
    done = cli("runs")
    assert done.code == 0
    assert "`hankwatch demo` makes one" in done.out


def test_settings_may_move_the_executions(cli: Cli) -> None:
    path = write_hank(cli, INIT, GOOD)
    env = {"HANKWATCH_RUN_EXECUTION_BASE_DIR": str(cli.cwd / "elsewhere")}
    assert cli("run", path, env=env).code == 0
    assert cli("tail", env=env).code == 0
    cli.refused("tail", code="run-not-found")


@pytest.mark.parametrize("named", ["latest", "prefix", "name", "path", "relative path", "run"])
def test_a_run_can_be_named_in_every_way(looker: Cli, named: str) -> None:
    (root,) = looker.executions.iterdir()
    run = json.loads(looker("runs", "--json").out)["run"]
    names = {
        "latest": "latest",
        "prefix": root.name[:-3],
        "name": root.name,
        "path": str(root),
        "relative path": f"../home/.hankweave-executions/{root.name}",
        "run": run,
    }
    done = looker("tail", names[named], "--type", "codon.completed", "--json")
    assert done.code == 0
    assert [line["type"] for line in done.lines] == ["codon.completed"]
