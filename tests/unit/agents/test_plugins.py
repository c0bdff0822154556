"""Another package's agent is one by its name; a broken one is named and stops nothing else."""

import textwrap
from pathlib import Path

import pytest

from hankwatch.agents.catalogue import agent_for
from hankwatch.agents.program import TurnRequest
from hankwatch.core.errors import UsageError

ENTRY_POINTS = """
    [hankwatch.agents]
    parrot = parrot_agent:Parrot
    broken = parrot_agent:nothing
    fails = parrot_agent:fails
    other = parrot_agent:other
    claude = parrot_agent:Parrot
"""
MODULE = """
    from hankwatch.agents.claude import ClaudeDialect
    from hankwatch.agents.program import Command

    class Parrot:
        name, env_names = "parrot", ()

        def __init__(self, executable, env):
            self.executable, self.env = executable, env

        def command(self, request):
            return Command((*self.executable, request.prompt), self.env)

        def dialect(self):
            return ClaudeDialect()

    def fails(executable, env):
        raise OSError("no cage")

    def other(executable, env):
        return "a string"
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "parrot_agent-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS))
    (tmp_path / "parrot_agent.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)


def test_an_agent_of_another_package_is_found_by_its_name() -> None:
    agent = agent_for("parrot", "m", hank_dir=Path("/hanks"))
    assert agent.command(TurnRequest("Hello.")).argv == ("parrot", "Hello.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("broken", "no attribute 'nothing'"), ("fails", "OSError: no cage"), ("other", "str is no AgentProgram")],
)
def test_a_broken_one_is_named_with_its_reason(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"the agent {name} of parrot_agent:.*{reason}"):
        agent_for(name, "m", hank_dir=Path("/hanks"))


def test_a_program_of_ours_cannot_be_replaced() -> None:
    assert agent_for("claude", "m", hank_dir=Path("/hanks")).name == "claude"
