"""What sentinels did, folded from a journal: of a replay, or of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from hankwatch.events.envelope import Event
from hankwatch.sentinels.reports import ReportFold

RESOURCE = "resource"


@dataclass(frozen=True, slots=True)
class SeenFire:
    """A trigger that was carried out."""

    cause: str
    at: str
    """The trigger's own instant, a stamp."""
    event_count: int
    codon: str
    """Runtime id."""


@dataclass(frozen=True, slots=True)
class SeenError:
    """A ``sentinel.error``, or an unloading because of ``resource``, which has none."""

    type: str
    message: str


@dataclass(slots=True)
class Seen:
    """All that one sentinel did, on all its codons, in order."""

    fires: list[SeenFire] = field(default_factory=list)
    errors: list[SeenError] = field(default_factory=list)
    entries: list[Any] = field(default_factory=list)
    """Of its report: texts, or the values of its lines."""
    chunks: list[bytes] = field(default_factory=list)
    """The entries as bytes of a report file."""
    is_text: bool = True
    """Whether the report is text; else it has one JSON value a line."""

    @property
    def report(self) -> bytes:
        """The report as one file: every entry, in order."""
        return b"".join(self.chunks)


def observe(events: Iterable[Event]) -> dict[str, Seen]:
    """Sentinel id -> what it did, of every sentinel that these events tell of.

    What `hankwatch sentinel retry` did afterwards is no part of it.
    """
    seen: dict[str, Seen] = {}
    fold = ReportFold()
    retried: set[tuple[Any, Any]] = set()
    for event in events:
        if not event.type.startswith("sentinel."):
            continue
        data = event.data
        load = data.get("sentinelId"), data.get("codonId")
        if event.type == "sentinel.loaded":
            (retried.add if data.get("source") == "retry" else retried.discard)(load)
        if load in retried:
            continue
        entry = fold.feed(event)
        one = seen.setdefault(str(data.get("sentinelId")), Seen())
        if event.type == "sentinel.triggered":
            codon = str(data.get("codonId"))
            fire = SeenFire(str(data.get("cause")), str(data.get("at")), int(data.get("eventCount", 0)), codon)
            one.fires.append(fire)
        elif event.type == "sentinel.error":
            one.errors.append(SeenError(str(data.get("errorType")), str(data.get("message"))))
        elif event.type == "sentinel.unloaded" and data.get("errorType") == RESOURCE:
            one.errors.append(SeenError(RESOURCE, "matching took too long, so the sentinel was unloaded"))
        elif event.type == "sentinel.loaded" and isinstance(data.get("report"), dict):
            one.is_text = data["report"].get("format") == "text"
        elif entry is not None:
            one.chunks.append(entry.data)
            one.entries.append(data["content"] if one.is_text else orjson.loads(entry.data))
    return seen
