"""From what a hank says to the agent program that does it (spec hank 1 and 3)."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from hankwatch.agents.claude import Claude
from hankwatch.agents.cline import Cline
from hankwatch.agents.codex import Codex
from hankwatch.agents.copilot import Copilot
from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.gemini import Gemini
from hankwatch.agents.opencode import Opencode
from hankwatch.agents.openhands import Openhands
from hankwatch.agents.pi import Pi
from hankwatch.agents.plugins import plugin_agent
from hankwatch.agents.program import AgentProgram
from hankwatch.agents.qwen import Qwen
from hankwatch.agents.recorded import RecordedAgent, RecordedSession
from hankwatch.agents.settings import AgentSettings
from hankwatch.agents.vibe import Vibe
from hankwatch.core.errors import UsageError
from hankwatch.hank.model import AgentSpec

PROGRAMS: Mapping[str, Callable[[Sequence[str], Mapping[str, str]], AgentProgram]] = MappingProxyType(
    {
        "claude": Claude,
        "codex": Codex,
        "gemini": Gemini,
        "qwen": Qwen,
        "opencode": Opencode,
        "pi": Pi,
        "copilot": Copilot,
        "vibe": Vibe,
        "openhands": Openhands,
        "cline": Cline,
    }
)
"""The programs a hank may name; each is made from how to start it and what to set for it."""

_BY_MODEL = (
    (re.compile(r"^pi/"), "pi"),
    (re.compile(r"anthropic|claude|sonnet|opus|haiku"), "claude"),
    (re.compile(r"gpt|codex|(^|/)o\d"), "codex"),
    (re.compile(r"gemini|google|flash"), "gemini"),
)


def program_for_model(model: str) -> str:
    """The program that runs a model when the hank names none; ``pi`` runs what nobody else does."""
    return next((name for pattern, name in _BY_MODEL if pattern.search(model.lower())), "pi")


def agent_for(
    agent: str | AgentSpec | None,
    model: str,
    *,
    hank_dir: Path,
    settings: Mapping[str, AgentSettings] = MappingProxyType({}),
) -> AgentProgram:
    """The program a codon runs.

    Args:
        agent: The codon's ``agent``: a name (ours, or one of ``plugins.GROUP``), ``recorded:PATH``,
            ``exec:COMMAND``, a spec, or None.
        model: The codon's model id; names the program when ``agent`` does not.
        hank_dir: What a relative PATH stands under.
        settings: How programs are started here, by name; what the codon says goes before it.

    Raises:
        UsageError: No program has this name, a plugin's is broken, or the command is none.
    """
    spec = agent if isinstance(agent, AgentSpec) else AgentSpec(name=agent or program_for_model(model))
    kind, _, rest = spec.name.partition(":")
    here = settings.get(kind, AgentSettings())
    command, env = spec.command or here.command, {**here.env, **spec.env}
    match kind:
        case "recorded" if rest:
            path = hank_dir / rest
            return RecordedSession(path) if path.is_dir() else RecordedAgent(path)
        case "exec" if rest or command:
            return ExecAgent(_split(rest) if rest else command or (), env)
        case _ if spec.name in PROGRAMS:
            return PROGRAMS[kind](command or (kind,), env)
        case _ if added := plugin_agent(spec.name, command or (spec.name,), env):
            return added
        case _:
            known = ", ".join(PROGRAMS)
            raise UsageError(f"no agent is named {spec.name!r}", hint=f"one of {known}, recorded:PATH or exec:COMMAND")


def _split(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"exec:{command}: {error}", hint="quote it as a shell would; no shell runs it") from error
    if not words:
        raise UsageError("exec: names no command")
    return words
