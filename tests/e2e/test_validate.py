"""``validate`` as a process: places, shapes, exit codes (spec cli, hank 1)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon, hank, loop, sentinel

DIAGNOSTIC_KEYS = ["file", "line", "column", "pointer", "severity", "code", "message", "hint"]


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


def test_the_demo_has_no_fault(cli: Cli, fixtures: Path) -> None:
    done = cli("validate", fixtures / "demo")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("no faults (1 codon, 4 sentinels)\n")


@pytest.mark.parametrize("named", [".", "hank.json"])
def test_a_fault_has_its_place_and_what_would_be_right(cli: Cli, named: str) -> None:
    write(cli.cwd / "hank.json", hank(codon(promptTxt="x")))
    done = cli("validate", named)
    assert (done.code, done.err) == (1, "")
    assert "hank.json:9:4: error[unknown-key]" in done.out
    assert "  at /hank/0/promptTxt" in done.out
    assert "promptText" in done.out


def test_json_has_exactly_the_documented_shape(cli: Cli) -> None:
    write(cli.cwd / "hank.json", hank(codon(promptTxt="x"), sentinels=[]))
    done = cli("validate", "--json")
    assert (done.code, done.err) == (1, "")
    assert list(done.json) == ["diagnostics", "ok"]
    assert done.json["ok"] is False
    assert [list(one) for one in done.json["diagnostics"]] == [DIAGNOSTIC_KEYS] * len(done.json["diagnostics"])
    assert {"/hank/0/promptTxt", "/sentinels"} <= {one["pointer"] for one in done.json["diagnostics"]}


def test_warnings_alone_are_no_failure(cli: Cli) -> None:
    write(cli.cwd / "sentinel.json", sentinel(userPromptText="What happened?"))
    done = cli("validate", "sentinel.json", "--json")
    assert done.code == 0
    assert done.json["ok"] is True
    assert "prompt-without-events" in {one["code"] for one in done.json["diagnostics"]}


def test_what_the_agent_programs_cannot_do_is_found_before_a_run(cli: Cli) -> None:
    (cli.cwd / "r.jsonl").touch()
    items = (
        codon("a", agent="claud"),
        codon("b", agent="recorded:r.jsonl", exhaustWithPrompt="Go on."),
        codon("c", agent="exec:true"),
        codon("d", agent="recorded:r.jsonl", continuationMode="continue-previous", autoCompact=True),
    )
    write(cli.cwd / "hank.json", hank(*items))
    found = {(one["pointer"], one["code"], one["severity"]) for one in cli("validate", "--json").json["diagnostics"]}
    assert {
        ("/hank/0/agent", "agent-unknown", "error"),
        ("/hank/1/exhaustWithPrompt", "agent-resumes-not", "error"),
        ("/hank/3/continuationMode", "agent-resumes-not", "error"),
        ("/hank/3/autoCompact", "auto-compact", "warning"),
    } <= found
    assert not [pointer for pointer, _, severity in found if pointer.startswith("/hank/2") and severity == "error"]


def test_faults_of_all_files_are_reported_at_once(cli: Cli) -> None:
    write(cli.cwd / "s.json", sentinel(nmae="x"))
    entries = [{"sentinelConfig": "s.json"}, {"sentinelConfig": "missing.json"}]
    write(cli.cwd / "hank.json", hank(codon(sentinels=entries), codon("two", promptFile="none.md", promptText=None)))
    write(cli.cwd / "hankwatch.toml", "[journal]\nsync = 1\n")
    found = {(one["file"], one["code"]) for one in cli("validate", "--json").json["diagnostics"]}
    assert {("s.json", "unknown-key"), ("hank.json", "file-unreadable"), ("hankwatch.toml", "unknown-key")} <= found


def test_a_prompt_that_does_not_parse_is_a_fault_of_the_hank_and_of_the_sentinel_alone(cli: Cli) -> None:
    write(cli.cwd / "p.md", "fine\n{% if %}\n{{ it.events }}\n")
    config = {key: value for key, value in sentinel(userPromptFile="p.md").items() if key != "userPromptText"}
    write(cli.cwd / "s.json", config)
    write(cli.cwd / "hank.json", hank(codon(sentinels=[{"sentinelConfig": "s.json"}])))
    for named in (".", "s.json"):
        done = cli("validate", named, "--json")
        assert done.code == 1
        (fault,) = (one for one in done.json["diagnostics"] if one["severity"] == "error")
        assert (fault["file"], fault["line"], fault["code"]) == ("p.md", 2, "template-invalid")


def test_a_sentinel_file_is_known_by_its_keys(cli: Cli) -> None:
    write(cli.cwd / "config.json", {"id": "x", "name": "X", "model": "m/x", "userPromptText": "{{ it.events }}"})
    pointers = {one["pointer"] for one in cli("validate", "config.json", "--json").json["diagnostics"]}
    assert not any(pointer.startswith("/hank") for pointer in pointers)


@pytest.mark.parametrize(
    ("name", "content"), [("hankwatch.toml", "[run]\nmodle = 'x'\n"), ("hankweave.json", '{"modle": "x"}')]
)
def test_a_settings_file_can_be_checked_alone(cli: Cli, name: str, content: str) -> None:
    write(cli.cwd / name, content)
    done = cli("validate", name)
    assert done.code == 1
    assert f"{name}:" in done.out
    assert "model" in done.out


def test_a_hank_is_shown_at_a_glance_unless_told_otherwise(cli: Cli) -> None:
    attached = [{"sentinelConfig": sentinel("eye", model="builtin/echo")}]
    inner = codon("inner", budget={"maxDollars": 2}, sentinels=attached)
    write(cli.cwd / "hank.json", hank(codon("first"), loop(inner), requirements={"env": ["NEEDED", "GIVEN"]}))
    done = cli("validate", env={"GIVEN": "hunter2"})
    assert "hunter2" not in done.out
    for line in (
        "codon first: anthropic/claude-haiku-4-5 by claude",
        "loop again: 2 times",
        "  codon inner: anthropic/claude-haiku-4-5 by claude (budget: maxDollars 2.0)",
        "    sentinel eye: event, immediate, builtin/echo",
        "needs NEEDED: not set",
        "needs GIVEN: set (**** of length 7)",
    ):
        assert line in done.out.splitlines()
    assert "codon first" not in cli("validate", "-q").out


def test_agents_and_models_of_codons_and_sentinels_are_shown(cli: Cli) -> None:
    write(cli.cwd / "codex", "#!/bin/sh\n").chmod(0o755)
    (cli.cwd / "r.jsonl").touch()
    attached = [{"sentinelConfig": sentinel("eye", model="openai/gpt-4o-mini")}]
    items = (
        codon("a", model="sonnet", sentinels=attached),
        codon("b", model="gpt-4o-mini"),
        codon("c", model="mistral/never-heard-of"),
        codon("d", agent="recorded:r.jsonl"),
    )
    write(cli.cwd / "hank.json", hank(*items))
    lines = cli("validate", env={"PATH": str(cli.cwd), "OPENAI_API_KEY": "sk-hunter2"}).out.splitlines()
    for line in (
        "codon b: gpt-4o-mini by codex",
        f"agent codex: {cli.cwd / 'codex'}",
        "agent claude: not found (claude is not on the PATH)",
        "model sonnet of claude: the newest of its family",
        "model gpt-4o-mini of codex: known, $0.15 in, $0.6 out per M tokens, window 128,000 tokens",
        "model mistral/never-heard-of of pi: not known, price unknown",
    ):
        assert line in lines
    (asked,) = [line for line in lines if line.startswith("model openai/gpt-4o-mini of sentinels: ")]
    assert asked.startswith("model openai/gpt-4o-mini of sentinels: known, key OPENAI_API_KEY, $0.15 in")
    assert not [line for line in lines if line.startswith("model") and "of recorded" in line]


def test_settings_that_were_set_are_shown_with_their_origin_and_all_when_asked(cli: Cli, fixtures: Path) -> None:
    env = {"HANKWATCH_RUN_STOP_BUDGET_S": "20"}
    short, long = (cli("validate", fixtures / "demo", *flag, env=env).out for flag in ((), ("-v",)))
    assert "run.stop_budget_s" in short
    assert "HANKWATCH_RUN_STOP_BUDGET_S" in short
    assert "default" not in short
    assert "run.tool_result_chars" in long
    assert "default" in long


def test_secrets_in_settings_are_masked(cli: Cli, fixtures: Path) -> None:
    write(cli.cwd / "other.toml", '[agents.claude.env]\nANTHROPIC_API_KEY = "sk-ant-hunter2"\n')
    done = cli("validate", fixtures / "demo", "--config", "other.toml")
    assert done.code == 0
    assert "ANTHROPIC_API_KEY" in done.out
    assert "hunter2" not in done.out + done.err


@pytest.mark.parametrize("name", ["hank", "hankweave", "sentinel", "settings"])
def test_schemas_can_be_printed(cli: Cli, name: str) -> None:
    assert cli("validate", "--print-schema", name).json["type"] == "object"


def test_an_unknown_schema_is_refused_with_those_that_are_known(cli: Cli) -> None:
    assert "hank, hankweave, sentinel, settings" in cli.refused("validate", "--print-schema", "x", code="usage").err


@pytest.mark.parametrize("kind", ["fifo", "empty", "binary", "device", "folder", "utf-16"])
def test_a_file_that_is_no_config_is_a_fault_and_never_a_wait(cli: Cli, kind: str) -> None:
    path = cli.cwd / "config.json"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "binary":
            path.write_bytes(bytes(range(256)))
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "utf-16":
            path.write_text("{}", encoding="utf-16")
        case _:
            path.touch()
    done = cli("validate", path, "--json")
    assert done.code == 1
    assert done.json["ok"] is False


def test_a_path_that_is_not_there_is_wrong_usage(cli: Cli) -> None:
    cli.refused("validate", "nowhere", code="usage")


def test_a_byte_order_mark_and_dos_line_ends_are_accepted(cli: Cli) -> None:
    text = json.dumps(hank(codon()), indent=1).replace("\n", "\r\n")
    (cli.cwd / "hank.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert cli("validate").code == 0
