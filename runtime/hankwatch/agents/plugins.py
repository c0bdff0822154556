"""Agent programs that other packages add, by the entry-point group ``hankwatch.agents``."""

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points

from hankwatch.agents.program import AgentProgram
from hankwatch.core.contain import contain
from hankwatch.core.errors import UsageError

GROUP = "hankwatch.agents"
"""An entry point's name is the program's; it names what makes one from how to start it and what to set for it."""


def plugin_names() -> frozenset[str]:
    """The programs that installed packages add."""
    return frozenset(entry_points(group=GROUP).names)


def plugin_agent(name: str, executable: Sequence[str], env: Mapping[str, str]) -> AgentProgram | None:
    """The program that a package adds under ``name``, or None when none does.

    Raises:
        UsageError: the package cannot be loaded, or what it makes is no agent program; says which and why.
    """
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        return None
    failures: list[Exception] = []
    with contain(failures.append):
        agent = found.load()(executable, env)
        if isinstance(agent, AgentProgram):
            return agent
        failures.append(TypeError(f"{type(agent).__name__} is no AgentProgram"))
    [failure] = failures
    raise UsageError(
        f"the agent {name} of {found.value} cannot be used: {type(failure).__name__}: {failure}",
        hint="its package is broken or made for another version of hankwatch",
    ) from failure
