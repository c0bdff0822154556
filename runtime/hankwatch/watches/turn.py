"""An agent's turn as watches see it: which session is woken, how deep its watches stand, where it runs (spec watches 1).

What the agent starts inherits the variables, so its own ``hankwatch watch …`` speaks for it. They orient and let the
policy hold; they are no sandbox, since the agent works as the same user of the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from hankwatch.watches.delivery import Delivery

SESSION: Final = "HANKWATCH_SESSION"
EXECUTION: Final = "HANKWATCH_EXECUTION"
DEPTH: Final = "HANKWATCH_WATCH_DEPTH"
_DEEPEST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an agent."""

    session: str
    """Name of its session: what a watch's ``session`` has to be so that a wake goes on with it."""
    depth: int = 0
    """At which its watches are armed: 0 in a user's turn, d + 1 in one that a watch of depth d woke."""
    home: str | None = None
    """Its execution directory; None where nothing can be woken."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self | None:
        """The turn that whoever has this environment works in; None outside of turns."""
        session = environ.get(SESSION)
        return cls(session, _count(environ.get(DEPTH)), environ.get(EXECUTION) or None) if session else None

    def environment(self) -> dict[str, str]:
        """What its agent is given."""
        home = {} if self.home is None else {EXECUTION: self.home}
        return {SESSION: self.session, DEPTH: str(self.depth), **home}


def woken_by(delivery: Delivery) -> int:
    """The depth at which the turn that a wake begins arms its watches."""
    return _count(delivery.content.get("depth")) + 1


def _count(said: Any) -> int:
    """Nothing that anybody wrote makes a watch shallower than 0; what is no number counts as 0."""
    try:
        return min(max(int(said), 0), _DEEPEST)
    except (TypeError, ValueError):
        return 0
