"""Agent programs: how to start them, and what their output means.

The ports are re-exported; what implements them is imported by its file, so that a setting costs no dialect.
"""

from typing import TYPE_CHECKING

from hankwatch.core.lazy import lazy_names

if TYPE_CHECKING:
    from hankwatch.agents.program import AgentProgram, Command, Dialect, TurnRequest

__all__ = [
    "AgentProgram",
    "Command",
    "Dialect",
    "TurnRequest",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "AgentProgram": "hankwatch.agents.program",
            "Command": "hankwatch.agents.program",
            "Dialect": "hankwatch.agents.program",
            "TurnRequest": "hankwatch.agents.program",
        },
    )
