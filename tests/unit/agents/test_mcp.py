"""How each program is given our MCP server: for one turn, beside what is configured, with nothing written at home."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from hankwatch.agents.catalogue import PROGRAMS
from hankwatch.agents.claude import ClaudeDialect
from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.mcp import McpServer
from hankwatch.agents.program import Command, TakesMcp, TurnRequest
from hankwatch.agents.recorded import RecordedAgent
from hankwatch.agents.signals import Reported
from hankwatch.core.errors import UsageError

SERVER = McpServer(
    ("/usr/bin/python3", "-c", 'say("a b")', "mcp"), {"HANKWATCH_SESSION": 'o"ne\\'}, Path("/managed/one-1-mcp.json")
)
ENTRY = {"command": "/usr/bin/python3", "args": ["-c", 'say("a b")', "mcp"], "env": {"HANKWATCH_SESSION": 'o"ne\\'}}
TAKE_NONE = {"gemini", "pi", "vibe", "openhands", "cline"}


def given(name: str, *executable: str, env: Mapping[str, str] | None = None) -> Command:
    """A turn's command with the server."""
    program = PROGRAMS[name](executable or (name,), {})
    assert isinstance(program, TakesMcp)
    command = program.command(TurnRequest("Do it.", "loop/fake"))
    return program.with_mcp(Command(command.argv, env or {}, command.stdin_lines, command.stdin_open), SERVER)


def after(command: Command, flag: str) -> str:
    return command.argv[command.argv.index(flag) + 1]


def test_the_file_has_the_form_that_most_programs_read() -> None:
    assert json.loads(SERVER.as_json()) == {"mcpServers": {"hankwatch": ENTRY}}


def test_claude_takes_it_from_its_command_line_waits_for_it_and_may_use_it() -> None:
    command = given("claude")
    (server,) = json.loads(after(command, "--mcp-config"))["mcpServers"].values()
    assert server == {**ENTRY, "alwaysLoad": True}
    assert command.argv[-2:] == ("--allowedTools", "mcp__hankwatch")
    assert command.env["MCP_CONNECTION_NONBLOCKING"] == "false"
    assert given("claude", env={"MCP_TIMEOUT": "1"}).env["MCP_TIMEOUT"] == "1", "whoever set it meant it"


def test_codex_takes_it_as_values_of_its_configuration_before_its_command() -> None:
    command = given("codex", "codex", "--profile", "mine")
    assert command.argv[:3] == ("codex", "--profile", "mine")
    flags = command.argv[3 : command.argv.index("exec")]
    assert set(flags[::2]) == {"-c"}
    config = tomllib.loads("\n".join(flags[1::2]))["mcp_servers"]["hankwatch"]
    assert {name: config[name] for name in ENTRY} == ENTRY
    assert config["required"] is True, "it does not go on without it"


def test_qwen_reads_it_as_its_lowest_settings() -> None:
    assert given("qwen", env={"A": "b"}).env == {"A": "b", "QWEN_CODE_SYSTEM_DEFAULTS_PATH": str(SERVER.file)}


def test_copilot_takes_it_from_its_command_line() -> None:
    (server,) = json.loads(after(given("copilot"), "--additional-mcp-config"))["mcpServers"].values()
    assert server == {**ENTRY, "type": "local", "tools": ["*"]}


def test_opencode_takes_it_beside_what_its_inline_configuration_says() -> None:
    said = {"theme": "x", "mcp": {"theirs": {"type": "remote", "url": "https://x.example"}}}
    config = json.loads(
        given("opencode", env={"OPENCODE_CONFIG_CONTENT": json.dumps(said)}).env["OPENCODE_CONFIG_CONTENT"]
    )
    ours = config["mcp"].pop("hankwatch")
    assert config == said
    assert (ours["command"], ours["environment"]) == (list(SERVER.argv), dict(SERVER.env))


@pytest.mark.parametrize("said", ["{", "[]"])
def test_opencode_with_inline_configuration_that_is_none_is_not_started(said: str) -> None:
    with pytest.raises(UsageError, match="OPENCODE_CONFIG_CONTENT"):
        given("opencode", env={"OPENCODE_CONFIG_CONTENT": said})


def test_a_command_is_told_where_the_file_is() -> None:
    agent = ExecAgent(("agent",))
    assert agent.with_mcp(Command(("agent",), {"A": "b"}), SERVER).env == {
        "A": "b",
        "HANKWATCH_MCP_CONFIG": "/managed/one-1-mcp.json",
    }


def test_a_recording_calls_nobody() -> None:
    command = Command(("play",))
    assert RecordedAgent(Path("a.jsonl")).with_mcp(command, SERVER) == command


def test_the_others_take_none() -> None:
    assert {name for name, make in PROGRAMS.items() if not isinstance(make((name,), {}), TakesMcp)} == TAKE_NONE


@pytest.mark.parametrize(("status", "told"), [("connected", 0), ("failed", 1)])
def test_claude_that_works_without_the_server_says_so(status: str, told: int) -> None:
    servers = [{"name": "theirs", "status": "failed"}, {"name": "hankwatch", "status": status}]
    line = {"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": servers}
    signals = ClaudeDialect().feed(json.dumps(line).encode())
    assert sum(isinstance(signal, Reported) for signal in signals) == told
