"""Events as clients ask for them: which ones, behind which cursor, in pages or as lines."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from hankwatch.events.envelope import Event
from hankwatch.serve.shelf import Span
from hankwatch.stream.reader import JournalReader

LAST_CURSOR: Final = 2**53 - 1
"""The largest that every client of JSON can write."""
_SCANNED_BYTES: Final = 64 * 1024 * 1024
"""Of the journal, what one page may read to find its events."""
_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Of events in one page, though never less than one event."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events a client wants."""

    types: frozenset[str] = frozenset()
    """Empty for all."""
    codon: str | None = None

    @classmethod
    def of(cls, types: Iterable[str], codon: str | None) -> "Wanted":
        """As the query says it."""
        return cls(frozenset(name for written in types for name in written.split(",") if name), codon)

    def __call__(self, event: Event) -> bool:
        if self.types and event.type not in self.types:
            return False
        return self.codon is None or self.codon in {event.data.get("codonId"), event.data.get("codon")}


@dataclass(slots=True)
class Page:
    """Some events, and where to go on."""

    events: list[Event] = field(default_factory=list)
    next: int = 0
    more: bool = False

    def as_json(self) -> bytes:
        """One JSON object."""
        events = [as_dict(event) for event in self.events]
        return orjson.dumps({"events": events, "next": self.next, "more": self.more})

    def as_lines(self) -> bytes:
        """One JSON object a line."""
        return b"".join(encoded(event) + b"\n" for event in self.events)


def page(reader: JournalReader, span: Span, after: int, wanted: Wanted, limit: int) -> Page:
    """The next events of a run; blocks for the journal, which may not be there yet."""
    found = Page(next=max(after, span.after))
    size_bytes = 0
    scan_end = found.next + _SCANNED_BYTES
    try:
        for event in reader.read(found.next):
            if span.until is not None and event.cursor > span.until:
                break
            full = len(found.events) >= limit or size_bytes >= _PAGE_BYTES or event.cursor > scan_end
            if full and event.cursor - event.size_bytes > max(after, span.after):
                found.next, found.more = event.cursor - event.size_bytes, True  # lines that are none are passed over
                break
            found.next = event.cursor
            if wanted(event):
                found.events.append(event)
                size_bytes += event.size_bytes
    except FileNotFoundError:
        pass
    return found


def as_dict(event: Event) -> dict[str, Any]:
    """The envelope with its cursor."""
    return {"cursor": event.cursor, **event.envelope()}


def encoded(event: Event) -> bytes:
    """The same as JSON on one line."""
    return orjson.dumps(as_dict(event))
