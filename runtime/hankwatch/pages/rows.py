"""Events as a console shows them: a line each, and one whole."""

from dataclasses import dataclass
from typing import Final

from hankwatch.events.envelope import Event
from hankwatch.pages.fires import json_text
from hankwatch.pages.gist import gist, is_failure
from hankwatch.pages.visible import Excerpt

_GIST_CHARS: Final = 240
_SCANNED_CHARS: Final = 4_000
"""Of a gist, what its line is made of."""
PAYLOAD_CHARS: Final = 200_000
"""Of one event on its own page."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event in a line."""

    cursor: int
    at_ms: int
    type: str
    codon_id: str
    """Empty outside of codons."""
    gist: Excerpt
    failed: bool
    size_bytes: int

    @classmethod
    def of(cls, event: Event) -> "EventRow":
        """What the line says."""
        said = gist(event)
        line = " ".join(said[:_SCANNED_CHARS].split())
        hidden = max(0, len(line) - _GIST_CHARS) + max(0, len(said) - _SCANNED_CHARS)
        codon_id = event.data.get("codonId") or event.data.get("codon") or ""
        return cls(
            event.cursor,
            event.at_ms,
            event.type,
            str(codon_id),
            Excerpt(line[:_GIST_CHARS], hidden),
            is_failure(event),
            event.size_bytes,
        )


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """One event with all it says, as far as a page goes."""

    row: EventRow
    id: str
    begins: int
    """The cursor behind which it stands."""
    payload: Excerpt
    sentinel_id: str
    """Of its sentinel; empty for an event of none."""

    @classmethod
    def of(cls, event: Event) -> "WholeEvent":
        """The event at length."""
        sentinel_id = str(event.data.get("sentinelId") or "") if event.type.startswith("sentinel.") else ""
        payload = Excerpt.of(json_text(event.data), PAYLOAD_CHARS)
        return cls(EventRow.of(event), event.id, event.cursor - event.size_bytes, payload, sentinel_id)
