"""Events as lines for people."""

from rich.text import Text

from hankwatch.core.text import one_line, shorten
from hankwatch.events.envelope import Event
from hankwatch.pages import gist as gists

_QUIET = frozenset({"state.snapshot", "filetree.updated", "sentinel.triggered"})
"""Types that views and plain log lines leave out; ``-v`` shows all."""
_MOVES = frozenset({"CodonTransitioned", "RunStarted", "RunFailed"})


def is_for_people(event: Event) -> bool:
    """Whether an event is worth a line; the others are bookkeeping."""
    if event.type == "state.transition":
        return event.data.get("transitionType") in _MOVES
    return event.type not in _QUIET


def event_line(event: Event, *, width: int = 160) -> Text:
    """One event on one line."""
    return Text.assemble(
        (event.timestamp[11:-1], "dim"), " ", (f"{one_line(event.type):<20}", "cyan"), " ", shorten(gist(event), width)
    )


def gist(event: Event) -> str:
    """What an event says, in one line without control characters."""
    return one_line(gists.gist(event))
