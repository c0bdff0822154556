"""What every agent program keeps to, whichever it is."""

from pathlib import Path

import pytest

from hankwatch.agents.claude import Claude
from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.program import AgentProgram, TurnRequest
from hankwatch.agents.recorded import RecordedAgent
from hankwatch.agents.signals import Junk

PROGRAMS: list[AgentProgram] = [Claude(), ExecAgent(("tool",)), RecordedAgent(Path("/recordings/a.jsonl"))]
NASTY = 'two\nlines, \u2028 a NUL \x00, \ud800 and {"json": true}'


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> AgentProgram:
    chosen: AgentProgram = request.param
    return chosen


def test_any_prompt_makes_a_command_of_whole_lines(program: AgentProgram) -> None:
    command = program.command(TurnRequest(NASTY, system_prompt=NASTY))
    assert all(command.argv)
    assert not any("\0" in word or "\ud800" in word for word in (*command.argv, *command.env.values()))
    assert all(line.endswith(b"\n") for line in command.stdin_lines)


def test_a_prompt_never_stands_in_the_command_line(program: AgentProgram) -> None:
    command = program.command(TurnRequest("--dangerous $(rm -rf /)"))
    assert not any("rm -rf" in word for word in command.argv)


def test_the_same_request_makes_the_same_command(program: AgentProgram) -> None:
    request = TurnRequest("Hello.", "anthropic/claude-haiku-4-5", "Be brief.")
    assert program.command(request) == program.command(request)


def test_each_process_gets_a_dialect_of_its_own(program: AgentProgram) -> None:
    line = b'{"type":"system","subtype":"init","session_id":"s"}'
    one, other = program.dialect(), program.dialect()
    one.feed(line)
    assert one is not other
    assert other.stamp_ms is None


def test_whatever_is_printed_the_dialect_goes_on(program: AgentProgram) -> None:
    dialect = program.dialect()
    assert all(isinstance(signal, Junk) for signal in dialect.feed(b"Segmentation fault"))
    assert dialect.feed(b'{"type":"system","subtype":"init","session_id":"s"}')
    assert dialect.finish() == []
