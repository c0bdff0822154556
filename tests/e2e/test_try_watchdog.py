"""``try`` and ``validate`` with a loop watchdog as a process (spec cli)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon, hank
from tests.support.recordings import at, event, write_journal

STREAMS = Path(__file__).parents[2] / "fixtures" / "agent-streams"
LINE_KEYS = ["round", "trigger", "action", "kind", "eventId", "evidence"]


def watchdog(cli: Cli, name: str = "policy.json", **policy: Any) -> Path:
    (cli.cwd / name).write_text(json.dumps({"$schema": "./watchdog.schema.json", "refractory_rounds": 3, **policy}))
    return cli.cwd / name


def chanting(codon_id: str, first: int, count: int) -> list[dict[str, Any]]:
    """Messages that say one sentence again and again."""
    said = {
        "action": "message",
        "content": "The value is still not what I expected it to be. " * 8,
        "codonId": codon_id,
    }
    return [event(first + n, "assistant.action", at(first + n), **said) for n in range(count)]


def test_json_lines_have_the_documented_keys_in_order(cli: Cli) -> None:
    done = cli("try", watchdog(cli), STREAMS / "claude-loop.jsonl", "--json")
    *lines, last = done.lines
    assert done.code == 0
    assert [list(line) for line in lines] == [LINE_KEYS] * 2
    assert [(line["round"], line["trigger"], line["action"], line["kind"]) for line in lines] == [
        (3, "call_repetition", "nudge", "escalation"),
        (9, "sentence_strict", "nudge", "break_loop"),
    ]
    assert lines[0]["evidence"] == {"count": 3, "tools": ["Bash"], "rule": "contiguous"}
    assert last == {"summary": {"rounds": 10, "nudges": 2, "interrupts": 0}}
    assert "would have acted 2 ×" in done.err


def test_the_text_names_round_action_and_evidence(cli: Cli) -> None:
    done = cli("try", watchdog(cli), STREAMS / "claude-loop.jsonl")
    assert "round 3   nudge (escalation)  call_repetition: 3 × Bash" in done.out
    assert "2 nudges, 0 interrupts in 10 rounds" in done.out


def test_the_cap_shows_what_ends_the_agent(cli: Cli) -> None:
    journal = write_journal(cli.cwd / "events.jsonl", chanting("one", 1, 6))
    *lines, last = cli("try", watchdog(cli, max_think_nudges=1), journal, "--json").lines
    assert [(line["action"], line["kind"], line["eventId"]) for line in lines] == [
        ("nudge", "break_loop", "e001"),
        ("interrupt", None, "e002"),
    ]
    assert last["summary"]["interrupts"] == 1


def test_each_codon_has_a_watchdog_of_its_own(cli: Cli) -> None:
    journal = write_journal(cli.cwd / "events.jsonl", [*chanting("one", 1, 1), *chanting("two", 2, 1)])
    *lines, last = cli("try", watchdog(cli, max_think_nudges=1), journal, "--json").lines
    assert [line["action"] for line in lines] == ["nudge", "nudge"]
    assert last["summary"]["rounds"] == 2
    *lines, _ = cli("try", watchdog(cli), journal, "--json", "--codon", "two").lines
    assert [line["eventId"] for line in lines] == ["e002"]


def test_a_healthy_recording_has_no_acts(cli: Cli) -> None:
    done = cli("try", watchdog(cli), STREAMS / "claude-success.jsonl", "--json")
    assert done.lines == [{"summary": {"rounds": 4, "nudges": 0, "interrupts": 0}}]


def test_a_faulty_watchdog_is_refused_with_all_its_faults(cli: Cli) -> None:
    done = cli("try", watchdog(cli, nudge_text=" ", max_errors=1), STREAMS / "claude-loop.jsonl")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("error[") == 2


@pytest.mark.parametrize("flag", ["--render", "--where", "--watch"])
def test_what_only_sentinels_have_is_refused(cli: Cli, flag: str) -> None:
    done = cli("try", watchdog(cli), STREAMS / "claude-loop.jsonl", flag)
    assert (done.code, done.out) == (2, "")


def diagnostics(cli: Cli, path: Path) -> list[dict[str, Any]]:
    done = cli("validate", path, "--json")
    assert done.code == (0 if done.json["ok"] else 1)
    found: list[dict[str, Any]] = done.json["diagnostics"]
    return found


def test_validate_knows_a_watchdog_by_its_keys(cli: Cli) -> None:
    assert diagnostics(cli, watchdog(cli)) == []


def test_a_rule_that_can_never_apply_is_an_error_with_its_place(cli: Cli) -> None:
    (cli.cwd / "policy.json").write_text('{\n  "repeat_call_threshold": 3,\n  "repeat_call_window": 2\n}')
    (found,) = diagnostics(cli, cli.cwd / "policy.json")
    assert (found["file"], found["line"], found["pointer"]) == ("policy.json", 3, "/repeat_call_window")
    assert (found["severity"], found["code"]) == ("error", "never-applies")
    assert "repeat_call_threshold" in found["message"]


def test_the_watchdogs_of_a_hank_are_validated_in_their_place(cli: Cli) -> None:
    one, two = codon("one", watchdog={"repeat_call_window": 2}), codon("two", watchdog={"max_errors": 3})
    (cli.cwd / "hank.json").write_text(json.dumps(hank(one, two, watchdog="standard"), indent=1))
    found = diagnostics(cli, cli.cwd / "hank.json")
    assert {fault["pointer"] for fault in found if fault["severity"] == "error"} >= {
        "/watchdog",
        "/hank/0/watchdog/repeat_call_window",
        "/hank/1/watchdog/max_errors",
    }
    assert all(fault["line"] for fault in found)
