"""What a process that was killed left unfinished, and whether it goes on from there (design "How it runs" 7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic.dataclasses import dataclass as checked

from hankwatch.events.run import Info
from hankwatch.runner.sessions import SESSION_CODON, WAITS, WAKE
from hankwatch.runner.state import FINAL
from hankwatch.stream.reader import JournalReader

GOES_ON: Final = "goesOn"
"""Name under which transitions and events carry a ``Reentry``."""


@checked(frozen=True, slots=True)
class Reentry:
    """Where a codon stands that waits for its watches, its agent's turn being over."""

    session_id: str
    agent: str
    turn: int
    """Number of its session's latest turn."""
    extensions: int
    """How often it was prompted again so far."""
    since: str | None = None
    """Stamp of the instant at which the waiting began, from which its limit counts."""

    def as_json(self) -> dict[str, Any]:
        """As the journal carries it."""
        return {
            "sessionId": self.session_id,
            "agent": self.agent,
            "turn": self.turn,
            "extensions": self.extensions,
            "since": self.since,
        }


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The codon that has begun last and has no end."""

    codon_id: str
    names: frozenset[str]
    """Of its session."""
    reentry: Reentry | None = None
    """Set while it waits: it is re-entered then. Any other one begins anew."""


def unfinished(journal: Path) -> Unfinished | None:
    """What the latest run of a hank left, runs for wakes alone in between or not; None when nothing is unfinished."""
    left: Unfinished | None = None
    for event in JournalReader(journal).read(types={"state.transition", Info.TYPE}):
        if event.type == Info.TYPE:
            left = left and _told(left, event.data)
        elif isinstance(inner := event.data.get("transition"), dict) and isinstance(data := inner.get("data"), dict):
            left = _moved(left, str(inner.get("type")), data)
    return left


def _told(left: Unfinished, data: Mapping[str, Any]) -> Unfinished:
    details = data.get("details")
    if not isinstance(details, dict):
        return left
    if data.get("code") == WAITS:
        return Unfinished(left.codon_id, left.names, _read(details.get(GOES_ON)))
    if data.get("code") == WAKE and details.get("session") in left.names:
        return Unfinished(left.codon_id, left.names)  # its turn was begun
    return left


def _moved(left: Unfinished | None, kind: str, data: Mapping[str, Any]) -> Unfinished | None:
    codon_id = str(data.get("codonId"))
    if codon_id.startswith(SESSION_CODON):
        return left
    match kind:
        case "CodonStarted":
            names = frozenset({codon_id, str(data.get("baseCodonId") or codon_id)})
            return Unfinished(codon_id, names, _read(data.get(GOES_ON)))
        case "CodonTransitioned" if left is not None and codon_id == left.codon_id:
            if data.get("to") in FINAL:
                return None
            return left if data.get("to") != "completing-sentinels" else Unfinished(codon_id, left.names)
        case "RunStarted":
            conditions = data.get("startingConditions")
            goes_on = isinstance(conditions, dict) and conditions.get("reason") == "continue"
            return left if goes_on else None
        case _:
            return left


def _read(told: object) -> Reentry | None:
    if not isinstance(told, dict):
        return None
    try:
        return Reentry(told["sessionId"], told["agent"], told["turn"], told["extensions"], told.get("since"))
    except (KeyError, ValidationError):
        return None
