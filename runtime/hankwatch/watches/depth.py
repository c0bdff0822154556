"""How deep a watch stands: a user's turn arms at 0, a turn woken by one at d arms at d + 1 (spec watches 1)."""

from collections.abc import Mapping
from typing import Any, Final

from hankwatch.watches.delivery import Delivery

TURN_DEPTH: Final = "HANKWATCH_WATCH_DEPTH"
"""Tells the agent of a woken turn, and what it starts, at which depth its watches are armed."""
_DEEPEST: Final = 1_000_000


def woken_by(delivery: Delivery) -> int:
    """The depth at which the turn that a wake begins arms its watches."""
    return _count(delivery.content.get("depth")) + 1


def turn_depth(environ: Mapping[str, str]) -> int:
    """The depth at which whoever has this environment arms watches; 0 outside of woken turns."""
    return _count(environ.get(TURN_DEPTH))


def turn_environment(depth: int) -> dict[str, str]:
    """What an agent is given in a turn that arms at ``depth``."""
    return {TURN_DEPTH: str(depth)} if depth else {}


def _count(said: Any) -> int:
    """Nothing that anybody wrote makes a watch shallower than 0; what is no number counts as 0."""
    try:
        return min(max(int(said), 0), _DEEPEST)
    except (TypeError, ValueError):
        return 0
