"""What every agent program keeps to, whichever it is."""

from pathlib import Path

import pytest
from tests.support.agent_streams import stream_lines

from hankwatch.agents.catalogue import PROGRAMS
from hankwatch.agents.detect import DetectingDialect
from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.program import AgentProgram, TurnRequest
from hankwatch.agents.recorded import RecordedAgent, RecordedSession
from hankwatch.agents.signals import Junk

FIXTURES = Path(__file__).parents[2] / "fixtures"
ALL: list[AgentProgram] = [
    *(make((name,), {}) for name, make in PROGRAMS.items()),
    ExecAgent(("tool",)),
    RecordedAgent(Path("/recordings/a.jsonl")),
    RecordedSession(FIXTURES / "recorded-session"),
]
NASTY = 'two\nlines, \u2028 a NUL \x00, \ud800 and {"json": true}'


def first_line(name: str) -> bytes:
    """The first line that says something, of a program's recorded success; of Claude's for the others."""
    lines = stream_lines(f"{name if name in PROGRAMS else 'claude'}-success")
    return next(line for line in lines if line.startswith(b"{") and DetectingDialect().feed(line))


@pytest.fixture(params=ALL, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> AgentProgram:
    chosen: AgentProgram = request.param
    return chosen


def test_any_prompt_makes_a_command_of_whole_lines(program: AgentProgram) -> None:
    command = program.command(TurnRequest(NASTY, system_prompt=NASTY))
    assert all(command.argv)
    assert not any("\0" in word or "\ud800" in word for word in (*command.argv, *command.env.values()))
    assert all(line.endswith(b"\n") for line in command.stdin_lines)


def test_a_prompt_is_never_taken_for_a_flag(program: AgentProgram) -> None:
    command = program.command(TurnRequest("--dangerous $(rm -rf /)"))
    flags = command.argv[: command.argv.index("--")] if "--" in command.argv else command.argv
    assert not any(word.startswith("--dangerous $") for word in flags)


def test_the_same_request_makes_the_same_command(program: AgentProgram) -> None:
    request = TurnRequest("Hello.", "anthropic/claude-haiku-4-5", "Be brief.")
    assert program.command(request) == program.command(request)


def test_each_process_gets_a_dialect_of_its_own(program: AgentProgram) -> None:
    one, other = program.dialect(), program.dialect()
    one.feed(first_line(program.name))
    assert one is not other
    assert other.stamp_ms is None


def test_whatever_is_printed_the_dialect_goes_on(program: AgentProgram) -> None:
    dialect = program.dialect()
    assert all(isinstance(signal, Junk) for signal in dialect.feed(b"Segmentation fault"))
    assert dialect.feed(first_line(program.name))
    assert dialect.finish() == []
