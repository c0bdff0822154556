"""Agent programs: how to start them, and what their output means.

The ports are re-exported; what implements them is imported by its file, so that a setting costs no dialect.
"""

from hankwatch.agents.program import AgentProgram, Command, Dialect, TurnRequest

__all__ = ["AgentProgram", "Command", "Dialect", "TurnRequest"]
