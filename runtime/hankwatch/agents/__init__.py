"""Agent programs: how to start them, and what their output means."""

from hankwatch.agents.catalogue import agent_for
from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import Outcome, decide
from hankwatch.agents.program import AgentProgram, Command, Dialect, TurnRequest
from hankwatch.agents.translate import Translator

__all__ = [
    "AgentProgram",
    "Command",
    "Dialect",
    "Evidence",
    "Outcome",
    "Translator",
    "TurnRequest",
    "agent_for",
    "decide",
]
