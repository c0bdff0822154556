"""``try`` as a process: its lines, its prompts, its refusals (spec cli)."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.recordings import at, event, write_journal
from tests.support.terminal import on_terminal

LINE_KEYS = ["trigger", "strategy", "cause", "at", "eventCount", "eventIds", "omitted"]
SUMMARY_KEYS = ["events", "matched", "triggers", "droppedTriggers", "droppedEvents", "badLines", "estimatedCostUsd"]


def sentinel(cli: Cli, name: str = "sentinel.json", **config: Any) -> Path:
    whole = {
        "id": "watcher",
        "name": "Watcher",
        "model": "builtin/echo",
        "userPromptText": "{{ it.trigger.number }}: {{ it.events | length }} of {{ it.codon.id }}",
        "trigger": {"type": "event", "on": ["info"]},
        "execution": {"strategy": "count", "threshold": 2},
        **config,
    }
    (cli.cwd / name).write_text(json.dumps({key: value for key, value in whole.items() if value is not None}))
    return cli.cwd / name


def journal(cli: Cli, *events: dict[str, Any]) -> Path:
    made = events or tuple(event(number, "info", at(number)) for number in (1, 2, 3))
    return write_journal(cli.cwd / "events.jsonl", made)


def test_json_lines_have_the_documented_keys_in_order(cli: Cli) -> None:
    done = cli("try", sentinel(cli), journal(cli), "--json")
    *lines, last = done.lines
    assert done.code == 0
    assert [list(line) for line in lines] == [LINE_KEYS, LINE_KEYS]
    assert [line["cause"] for line in lines] == ["threshold", "drain"]
    assert list(last) == ["summary"]
    assert list(last["summary"]) == SUMMARY_KEYS
    assert "would have fired 2 ×" in done.err


def test_no_drain_leaves_the_buffer(cli: Cli) -> None:
    *lines, _ = cli("try", sentinel(cli), journal(cli), "--json", "--no-drain").lines
    assert [line["eventIds"] for line in lines] == [["e001", "e002"]]


def test_render_adds_both_prompts(cli: Cli) -> None:
    config = sentinel(cli, systemPromptText="Be brief.")
    *lines, _ = cli("try", config, journal(cli), "--json", "--render").lines
    assert list(lines[0]) == [*LINE_KEYS, "system", "user"]
    assert [(line["system"], line["user"]) for line in lines] == [
        ("Be brief.", "1: 2 of imported"),
        ("Be brief.", "2: 1 of imported"),
    ]


def test_a_prompt_that_fails_says_so_in_its_place(cli: Cli) -> None:
    config = sentinel(cli, userPromptText="{{ it.nothing.there }}")
    line, *_ = cli("try", config, journal(cli), "--json", "--render").lines
    assert (line["system"], line["user"]) == (None, None)
    assert "nothing" in line["renderError"]


def test_a_prompt_that_does_not_parse_is_a_config_error(cli: Cli) -> None:
    done = cli("try", sentinel(cli, userPromptText="{% if %}"), journal(cli), "--render")
    assert (done.code, done.out) == (2, "")
    assert "sentinel.json:1:" in done.err
    assert "error[template-invalid]" in done.err


def test_a_faulty_sentinel_is_refused_with_all_its_faults(cli: Cli) -> None:
    done = cli("try", sentinel(cli, model="", execution={"strategy": "often"}), journal(cli))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("error[") >= 2


def test_where_says_which_condition_failed(cli: Cli) -> None:
    wanted = {"path": "message", "operator": "equals", "value": "3"}
    config = sentinel(cli, trigger={"type": "event", "on": ["info"], "conditions": [wanted]})
    done = cli("try", config, journal(cli), "--where")
    assert "info × 3: 1 met every condition" in done.out
    assert '2 failed message equals "3": found "1" × 1, "2" × 1' in done.out
    *_, where, summary = cli("try", config, journal(cli), "--where", "--json").lines
    assert list(summary) == ["summary"]
    (seen,) = where["where"]["steps"][0]["byType"]
    assert (seen["asked"], seen["fitted"], seen["failed"][0]["eventIds"]) == (3, 1, ["e001", "e002"])


def test_where_says_that_a_type_never_occurs(cli: Cli) -> None:
    config = sentinel(cli, trigger={"type": "event", "on": ["file.updated"]})
    assert "file.updated never occurs here; what does: info × 3" in cli("try", config, journal(cli), "--where").out
    assert "--where shows which condition failed" in cli("try", config, journal(cli)).out


def test_the_timeline_is_drawn_on_a_terminal_and_elsewhere_only_if_wanted(cli: Cli) -> None:
    config, recording = sentinel(cli), journal(cli)
    assert "events  " not in cli("try", config, recording).out
    piped = cli("try", config, recording, "--timeline").out
    assert "events    @@@ 3\n" in piped
    for flags, drawn in (((), True), (("--no-timeline",), False)):
        with on_terminal(cli, "try", config, recording, *flags, columns=80) as terminal:
            assert terminal.ended() == 0
            assert ("events    ███ 3" in terminal.text) is drawn


def test_the_cost_is_estimated_where_a_price_is_known(cli: Cli) -> None:
    for model, told in (
        ("builtin/echo", "at no cost"),
        ("anthropic/claude-haiku-4-5", "about $0.00"),
        ("anthropic/of-the-future", "cost unknown"),
    ):
        done = cli("try", sentinel(cli, model=model), journal(cli), "--json")
        estimated = done.lines[-1]["summary"]["estimatedCostUsd"]
        assert f"would have fired 2 ×, {told}" in done.err
        match model:
            case "builtin/echo":
                assert estimated == 0
            case "anthropic/claude-haiku-4-5":
                assert 0 < estimated < 0.01
                assert "replies of 300 tokens assumed" in done.err
            case _:
                assert estimated is None


def test_nothing_fired_is_no_failure(cli: Cli) -> None:
    done = cli("try", sentinel(cli), journal(cli, event(1, "error", at(1), message="x", fatal=False)))
    assert done.code == 0
    assert "would have fired 0 ×" in done.out


def test_the_latest_run_is_tried_unless_another_is_named(looker: Cli) -> None:
    path = sentinel(
        looker, "latest.json", trigger={"type": "event", "on": ["codon.completed"]}, execution={"strategy": "immediate"}
    )
    *lines, last = looker("try", path, "--json").lines
    assert len(lines) == 1
    assert last["summary"]["triggers"] == 1


def test_what_would_have_fired_did_fire(looker: Cli, fixtures: Path) -> None:
    """The demo's sentinels count events, not milliseconds, in two cases: these agree with the run itself."""
    (execution,) = looker.executions.iterdir()
    lines = (execution / ".hankweave" / "events" / "events.jsonl").read_text().splitlines()
    fired = [one["data"] for one in map(json.loads, lines) if one["type"] == "sentinel.triggered"]
    for name in ("error-streak", "tool-tally"):
        *tried, _ = looker("try", fixtures / "demo" / "sentinels" / f"{name}.json", "--json").lines
        assert [one["eventIds"] for one in tried] == [one["eventIds"] for one in fired if one["sentinelId"] == name]


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202etext\r\x08"


@pytest.mark.parametrize("command", ["try", "try --render", "tail", "tail -v", "tail --json", "journal stats"])
def test_event_text_never_reaches_the_terminal_raw(cli: Cli, command: str) -> None:
    config = sentinel(cli, userPromptText="{{ it.events[0].data.message }}", execution={"strategy": "immediate"})
    path = journal(cli, event(1, "info", at(1), message=HOSTILE), event(2, f"odd{HOSTILE}", at(2)))
    done = cli(*command.split(), *([config] if command.startswith("try") else []), path)
    assert done.code == 0
    for control in ("\x1b", "\x07", "\x9b", "\r", "\x08"):
        assert control not in done.out + done.err


def test_a_recording_may_be_packed_and_linked(cli: Cli, fixtures: Path) -> None:
    stream = (fixtures / "agent-streams" / "gemini-success.jsonl").read_bytes()
    (cli.cwd / "stream.gz").write_bytes(gzip.compress(stream))
    (cli.cwd / "link").symlink_to("stream.gz")
    done = cli("try", sentinel(cli, trigger={"type": "event", "on": ["*"]}), "link", "--codon", "build")
    assert done.code == 0
    assert "(gemini)" in done.out


def test_the_program_can_be_named(cli: Cli) -> None:
    (cli.cwd / "stream").write_text('{"type":"thread.started","thread_id":"t"}\n')
    done = cli("try", sentinel(cli), "stream", "--agent", "claude", "--json")
    assert done.lines[-1]["summary"]["events"] == 1
    cli.refused("try", sentinel(cli), "stream", "--agent", "emacs", code="usage")


@pytest.mark.parametrize(
    "kind", ["fifo", "directory", "empty", "binary", "torn gzip", "dangling link", "nothing", "device"]
)
def test_what_is_no_recording_is_refused_at_once(cli: Cli, kind: str) -> None:
    path = cli.cwd / "source"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "empty":
            path.touch()
        case "binary":
            path.write_bytes(bytes(range(256)) * 100)
        case "torn gzip":
            path.write_bytes(gzip.compress(b'{"type":"info"}' * 1_000)[:30])
        case "dangling link":
            path.symlink_to("nowhere")
        case "device":
            path.symlink_to("/dev/zero")
    missing = kind in {"dangling link", "nothing"}
    done = cli.refused("try", sentinel(cli), path, code="run-not-found" if missing else "usage")
    assert "hint: " in done.err
