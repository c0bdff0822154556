"""From a hank's words to a command line."""

import json
import sys
from pathlib import Path

import pytest

from hankwatch.agents.catalogue import agent_for, program_for_model
from hankwatch.agents.claude import Claude
from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.program import Interrupts, Resumes, Steers, TurnRequest
from hankwatch.agents.recorded import RecordedAgent
from hankwatch.agents.settings import AgentSettings
from hankwatch.core.errors import NotYetSupported, UsageError
from hankwatch.hank.model import AgentSpec

HANK = Path("/hanks/one")
REQUEST = TurnRequest("Fix it.", model="anthropic/claude-haiku-4-5", system_prompt="Be brief.")


def test_claude_reads_its_prompt_from_stdin_and_keeps_it_open() -> None:
    command = Claude().command(REQUEST)
    assert command.argv == (
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
        "--permission-mode",
        "bypassPermissions",
        "--model",
        "claude-haiku-4-5",
        "--append-system-prompt",
        "Be brief.",
    )
    assert command.stdin_open
    [line] = command.stdin_lines
    assert json.loads(line) == {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
    }
    assert line.endswith(b"\n")


def test_claude_can_be_resumed_steered_and_interrupted() -> None:
    claude = Claude()
    assert isinstance(claude, Resumes | Steers | Interrupts)
    assert claude.resume(REQUEST, "session-1").argv[-2:] == ("--resume", "session-1")
    assert json.loads(claude.steer("Stop."))["message"]["content"][0]["text"] == "Stop."
    assert json.loads(claude.interrupt("r1")) == {
        "type": "control_request",
        "request_id": "r1",
        "request": {"subtype": "interrupt"},
    }


def test_a_permission_of_ones_own_replaces_the_bypass() -> None:
    argv = Claude(("claude", "--permission-mode", "acceptEdits")).command(REQUEST).argv
    assert "bypassPermissions" not in argv


@pytest.mark.parametrize("agent", [RecordedAgent(HANK / "x.jsonl"), ExecAgent(("tool",))])
def test_a_missing_method_is_the_capabilitys_absence(agent: object) -> None:
    assert not isinstance(agent, Resumes | Steers | Interrupts)


def test_a_recording_is_played_by_this_python_from_a_path_under_the_hank() -> None:
    command = agent_for("recorded:runs/a.jsonl", "any", hank_dir=HANK).command(REQUEST)
    assert command.argv[0] == sys.executable
    assert [Path(word).name for word in command.argv[3:5]] == ["player.py", "a.jsonl"]
    assert command.argv[4] == "/hanks/one/runs/a.jsonl"


def test_exec_splits_as_a_shell_would_and_runs_none() -> None:
    command = agent_for("exec:./agent 'two words' $HOME", "m", hank_dir=HANK).command(REQUEST)
    assert command.argv == ("./agent", "two words", "$HOME")
    assert command.stdin_lines == (b"Fix it.\n",)
    assert command.env["HANKWATCH_MODEL"] == "anthropic/claude-haiku-4-5"


def test_the_codons_command_goes_before_the_settings() -> None:
    here = {"claude": AgentSettings(command=("/opt/claude",), env={"A": "1", "B": "1"})}
    spec = AgentSpec(name="claude", command=("/mine/claude",), env={"B": "2"})
    assert agent_for("claude", "m", hank_dir=HANK, settings=here) == Claude(("/opt/claude",), {"A": "1", "B": "1"})
    assert agent_for(spec, "m", hank_dir=HANK, settings=here) == Claude(("/mine/claude",), {"A": "1", "B": "2"})


@pytest.mark.parametrize(
    ("model", "program"),
    [
        ("sonnet", "claude"),
        ("anthropic/claude-opus-4", "claude"),
        ("gpt-5.5", "codex"),
        ("openai/o3", "codex"),
        ("gemini-2.5-flash", "gemini"),
        ("google/any", "gemini"),
        ("pi/anthropic/claude-opus-4", "pi"),
        ("mistral/large", "pi"),
    ],
)
def test_a_model_names_the_program_that_runs_it(model: str, program: str) -> None:
    assert program_for_model(model) == program


def test_a_program_of_a_later_version_says_so() -> None:
    with pytest.raises(NotYetSupported, match="the agent codex"):
        agent_for(None, "gpt-5.5", hank_dir=HANK)


@pytest.mark.parametrize("agent", ["claud", "recorded:", "exec:", "exec:  ", "exec:'open", "claude:x"])
def test_what_names_no_program_is_refused_with_a_hint(agent: str) -> None:
    with pytest.raises(UsageError) as caught:
        agent_for(agent, "m", hank_dir=HANK)
    assert not isinstance(caught.value, NotYetSupported)
