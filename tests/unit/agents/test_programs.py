"""From a hank's words to a command line."""

import json
import sys
from pathlib import Path

import pytest

from hankwatch.agents.catalogue import PROGRAMS, agent_for, program_for_model
from hankwatch.agents.claude import Claude
from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.openhands import Openhands
from hankwatch.agents.program import Interrupts, Resumes, Steers, TurnRequest
from hankwatch.agents.recorded import RecordedAgent
from hankwatch.agents.settings import AgentSettings
from hankwatch.core.errors import UsageError
from hankwatch.hank.model import AgentSpec

HANK = Path("/hanks/one")
REQUEST = TurnRequest("Fix it.", model="anthropic/claude-haiku-4-5", system_prompt="Be brief.")


@pytest.fixture
def as_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)


@pytest.mark.usefixtures("as_a_user")
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


def test_root_gets_a_list_of_allowed_tools_as_the_bypass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    argv = Claude().command(REQUEST).argv
    assert "bypassPermissions" not in argv
    assert "--allowedTools" in argv


@pytest.mark.usefixtures("as_a_user")
def test_a_permission_of_ones_own_replaces_the_bypass() -> None:
    argv = Claude(("claude", "--permission-mode", "acceptEdits")).command(REQUEST).argv
    assert "bypassPermissions" not in argv


def test_a_missing_method_is_the_capabilitys_absence() -> None:
    assert not isinstance(RecordedAgent(HANK / "x.jsonl"), Resumes | Steers | Interrupts)
    assert not isinstance(ExecAgent(("tool",)), Steers | Interrupts)


def test_a_command_of_ones_own_learns_of_its_turn_and_session_by_variables() -> None:
    tool = ExecAgent(("tool",))
    first, third = tool.command(TurnRequest("Go.")), tool.resume(TurnRequest("Go on.", turn=3), "s-1")
    assert first.argv == third.argv == ("tool",)
    assert (first.env["HANKWATCH_TURN"], third.env["HANKWATCH_TURN"]) == ("1", "3")
    assert third.env["HANKWATCH_SESSION_ID"] == "s-1"
    assert "HANKWATCH_SESSION_ID" not in first.env


def test_a_recorded_folder_plays_the_file_of_the_turn(tmp_path: Path) -> None:
    for name in ("1.jsonl", "2.gemini.jsonl.gz", "README.md"):
        (tmp_path / name).touch()
    agent = agent_for(f"recorded:{tmp_path}", "any", hank_dir=HANK)
    assert isinstance(agent, Resumes)
    assert agent.command(TurnRequest("Go.")).argv[4] == str(tmp_path / "1.jsonl")
    assert agent.resume(TurnRequest("Go on.", turn=2), "s").argv[4] == str(tmp_path / "2.gemini.jsonl.gz")
    with pytest.raises(UsageError, match="turn 3 of the session is not recorded"):
        agent.resume(TurnRequest("Go on.", turn=3), "s")


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_of_the_contract_is_made_by_its_name(name: str) -> None:
    here = {name: AgentSettings(command=("/opt/it", "--fixed"), env={"A": "1"})}
    agent = agent_for(name, "m", hank_dir=HANK, settings=here)
    command = agent.command(TurnRequest("Hello."))
    assert agent.name == name
    assert command.argv[:2] == ("/opt/it", "--fixed")
    assert command.env["A"] == "1"
    assert agent_for(name, "m", hank_dir=HANK).command(TurnRequest("Hello.")).argv[0] == name


def arguments(name: str, model: str | None = None, system_prompt: str | None = None, *fixed: str) -> str:
    program = PROGRAMS[name]((name, *fixed), {})
    return " ".join(program.command(TurnRequest("Hello.", model, system_prompt)).argv)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("codex", "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -"),
        ("gemini", "gemini --output-format stream-json --approval-mode yolo"),
        ("qwen", "qwen --auth-type openai --output-format stream-json --approval-mode yolo"),
        ("opencode", "opencode run --format json --thinking --auto"),
        ("pi", "pi --mode json --print"),
        ("copilot", "copilot --output-format json --no-auto-update --allow-all-tools --allow-all-paths"),
        ("vibe", "vibe --prompt --output streaming --auto-approve"),
        ("openhands", "openhands --headless --json --override-with-envs --task=Hello."),
        ("cline", "cline --json -- Hello.\n"),
    ],
)
def test_the_command_line_of_a_turn(name: str, expected: str) -> None:
    assert arguments(name) == expected


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("codex", "openai/gpt-5.5", "--model gpt-5.5"),
        ("codex", "gpt-5.5", "--model gpt-5.5"),
        ("gemini", "google/gemini-2.5-flash", "--model gemini-2.5-flash"),
        ("qwen", "qwen/qwen3-coder", "--model qwen/qwen3-coder"),
        ("opencode", "anthropic/claude-opus-4", "--model anthropic/claude-opus-4"),
        ("pi", "pi/anthropic/claude-opus-4", "--model anthropic/claude-opus-4"),
        ("pi", "mistral/large", "--model mistral/large"),
        ("copilot", "anthropic/claude-sonnet-4.5", "--model claude-sonnet-4.5"),
        ("copilot", "qwen/qwen3-coder", "--model qwen/qwen3-coder"),
        ("cline", "anthropic/claude-opus-4", "--provider anthropic -m claude-opus-4"),
        ("cline", "openai/gpt-5.5", "--provider openai-native -m gpt-5.5"),
        ("cline", "openrouter/qwen/qwen3", "--provider openrouter -m qwen/qwen3"),
        ("cline", "opus", "-m opus"),
    ],
)
def test_a_model_is_named_as_the_program_names_it(name: str, model: str, expected: str) -> None:
    assert f" {expected} " in arguments(name, model) + " "


@pytest.mark.parametrize(
    ("name", "model", "variable"),
    [("vibe", "mistral/devstral", ("VIBE_ACTIVE_MODEL", "devstral")), ("openhands", "a/b", ("LLM_MODEL", "a/b"))],
)
def test_a_model_can_be_a_variable(name: str, model: str, variable: tuple[str, str]) -> None:
    assert variable in PROGRAMS[name]((name,), {}).command(TurnRequest("Hello.", model)).env.items()


def test_opencode_needs_the_provider_of_a_model() -> None:
    with pytest.raises(UsageError, match="no model 'opus'") as caught:
        arguments("opencode", "opus")
    assert caught.value.hint == "name its provider: PROVIDER/opus"


@pytest.mark.parametrize("name", ["claude", "qwen", "pi"])
def test_a_system_prompt_is_a_flag_where_there_is_one(name: str) -> None:
    assert "--append-system-prompt Be brief." in arguments(name, None, "Be brief.")


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"claude", "qwen", "pi"}))
def test_elsewhere_it_stands_before_the_prompt_in_a_block_of_its_own(name: str) -> None:
    command = PROGRAMS[name]((name,), {}).command(TurnRequest("Hello.", system_prompt="Be brief."))
    said = " ".join([*command.argv, *(line.decode() for line in command.stdin_lines)])
    assert "<instructions>\nBe brief.\n</instructions>\n\nHello." in said


@pytest.mark.parametrize(
    ("name", "fixed", "bypass"),
    [
        ("codex", ("--sandbox", "read-only"), "--dangerously-bypass-approvals-and-sandbox"),
        ("codex", ("--sandbox=read-only",), "--dangerously-bypass-approvals-and-sandbox"),
        ("gemini", ("--approval-mode", "plan"), "yolo"),
        ("qwen", ("--approval-mode", "plan"), "yolo"),
        ("qwen", ("--auth-type", "qwen-oauth"), "--auth-type openai"),
        ("copilot", ("--allow-tool", "shell"), "--allow-all-tools"),
        ("vibe", ("--smart-approve",), "--auto-approve"),
    ],
)
def test_what_the_author_fixed_is_not_said_again(name: str, fixed: tuple[str, ...], bypass: str) -> None:
    assert bypass in arguments(name)
    assert bypass not in arguments(name, None, None, *fixed)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("codex", "codex exec resume --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox s1 -"),
        ("gemini", "--resume s1"),
        ("qwen", "--resume s1"),
        ("opencode", "--session s1"),
        ("pi", "--session s1"),
        ("copilot", "--resume=s1"),
        ("vibe", "--resume s1"),
        ("openhands", "--resume s1"),
    ],
)
def test_a_session_is_resumed_by_its_id(name: str, expected: str) -> None:
    program = PROGRAMS[name]((name,), {})
    assert isinstance(program, Resumes)
    assert expected in " ".join(program.resume(TurnRequest("Go on."), "s1").argv)


def test_cline_resumes_for_a_person_only() -> None:
    assert not isinstance(PROGRAMS["cline"](("cline",), {}), Resumes)


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"claude"}))
def test_only_claude_can_be_steered(name: str) -> None:
    assert not isinstance(PROGRAMS[name]((name,), {}), Steers | Interrupts)


@pytest.mark.parametrize("name", ["openhands", "cline"])
def test_a_prompt_that_no_argument_holds_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="does not fit into a command line"):
        PROGRAMS[name]((name,), {}).command(TurnRequest("x" * 131_072))


def test_output_that_would_be_held_back_is_asked_for_at_once() -> None:
    assert Openhands().command(REQUEST).env["PYTHONUNBUFFERED"] == "1"


@pytest.mark.parametrize("agent", ["claud", "recorded:", "exec:", "exec:  ", "exec:'open", "claude:x"])
def test_what_names_no_program_is_refused_with_a_hint(agent: str) -> None:
    with pytest.raises(UsageError):
        agent_for(agent, "m", hank_dir=HANK)
