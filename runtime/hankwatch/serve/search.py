"""Windows of a run's events for people: the newest ones, older, newer, of a kind, with a text; each bounded."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from hankwatch.core.files import reading
from hankwatch.events.envelope import Event
from hankwatch.serve.events import Wanted
from hankwatch.serve.shelf import Span
from hankwatch.stream.reader import JournalReader

SCANNED_BYTES: Final = 64 * 1024 * 1024
"""Of the journal, what one window may go through; there is a way to go on behind it."""
_DECODED: Final = 10_000
"""Events that are looked into for one window."""
_WINDOW_BYTES: Final = 8 * 1024 * 1024
"""Of events in one window, though never less than one."""
_CHUNK_BYTES: Final = 1024 * 1024
_OWN: Final = b'{"id":"'
"""As this runtime begins a line."""


@dataclass(frozen=True, slots=True)
class Search:
    """Which events somebody wants to see."""

    wanted: Wanted = field(default_factory=Wanted)
    spellings: frozenset[bytes] = frozenset()
    """Of a text, as a line of the journal may have it in lower case; one has to be there. Empty for all."""

    @classmethod
    def of(cls, types: Iterable[str], codon: str | None, text: str) -> "Search":
        """As the query says it; an event has the text when it stands anywhere in its JSON."""
        return cls(Wanted.of(types, codon or None), _spellings(text))

    @property
    def narrows(self) -> bool:
        """It does not want everything."""
        return bool(self.spellings or self.wanted.types or self.wanted.codon is not None)

    def may_hold(self, lines: bytes) -> bool:
        """Whether lines of the journal have to be looked into."""
        if self.spellings:
            lowered = lines.lower()
            if not any(spelling in lowered for spelling in self.spellings):
                return False
        return not self.wanted.types or any(name.encode() in lines for name in self.wanted.types)


def _spellings(text: str) -> frozenset[bytes]:
    """As it is, as ours and others' JSON has it, and in other cases: bytes know those of ASCII alone."""
    ways = {text, text.lower(), text.upper(), text.capitalize()} - {""}
    plain = {way.encode("utf-8", "replace") for way in ways}
    quoted = {orjson.dumps(way.decode())[1:-1] for way in plain} | {json.dumps(way)[1:-1].encode() for way in ways}
    return frozenset(spelling.lower() for spelling in plain | quoted)


@dataclass(slots=True)
class Window:
    """Some events that lie next to each other as far as the search goes, the newest first."""

    events: list[Event] = field(default_factory=list)
    after: int = 0
    """Everything behind this cursor was looked through, up to ``until``; older events end here."""
    until: int = 0
    has_older: bool = False
    """There is more of the run before ``after``."""
    has_newer: bool = False
    """There is more of the run behind ``until``."""
    full: bool = False
    """It ends because it holds enough, not because the search has gone far enough."""


def window(
    journal: Path, span: Span, search: Search, *, limit: int, until: int | None = None, after: int | None = None
) -> Window:
    """The last events up to a cursor, or the first ones behind one; blocks for the journal, which may not be there yet.

    Args:
        journal: Of the run.
        span: Where the run stands in it.
        search: Which events count.
        limit: How many at most.
        until: The last cursor that counts; None for the run's end. Not used with ``after``.
        after: Takes the first events behind this one.
    """
    reader = JournalReader(journal)
    try:
        size = reader.size_bytes()
    except OSError:
        return Window()
    begin, end = span.after, size if span.until is None else min(size, span.until)
    if after is None:
        return _last(reader, search, begin, end if until is None else min(until, end), end=end, limit=limit)
    return _first(reader, search, begin, max(after, begin), end=end, limit=limit)


def _last(reader: JournalReader, search: Search, begin: int, until: int, *, end: int, limit: int) -> Window:
    floor = max(begin, until - SCANNED_BYTES)
    found = Window(after=floor, until=until, has_newer=until < end)
    size_bytes = 0
    for count, event in enumerate(reader.search(search.may_hold, after=floor, until=until, backwards=True), 1):
        if search.wanted(event):
            found.events.append(event)
            size_bytes += event.size_bytes
        found.full = len(found.events) >= limit or size_bytes >= _WINDOW_BYTES
        if found.full or count >= _DECODED:
            found.after = event.cursor - event.size_bytes
            break
    found.has_older = found.after > begin
    return found


def _first(reader: JournalReader, search: Search, begin: int, after: int, *, end: int, limit: int) -> Window:
    until = min(end, after + SCANNED_BYTES)
    found = Window(after=after, until=max(after, until), has_older=after > begin)
    size_bytes = 0
    for count, event in enumerate(reader.search(search.may_hold, after=after, until=until), 1):
        if search.wanted(event):
            found.events.insert(0, event)
            size_bytes += event.size_bytes
        found.full = len(found.events) >= limit or size_bytes >= _WINDOW_BYTES
        if found.full or count >= _DECODED:
            found.until = event.cursor
            break
    found.has_newer = found.until < end
    return found


def event_at(journal: Path, span: Span, cursor: int) -> Event | None:
    """The run's event whose cursor it is; blocks."""
    if cursor <= span.after or (span.until is not None and cursor > span.until):
        return None
    try:
        found = next(JournalReader(journal).search(lambda _: True, until=cursor, backwards=True), None)
    except FileNotFoundError:
        return None
    return found if found is not None and found.cursor == cursor else None


def events_of(journal: Path, ids: Collection[str], after: int, until: int) -> Iterator[Event]:
    """The events of these ids in a stretch, the last one first; blocks."""
    wanted = {event_id.encode("utf-8", "surrogatepass") for event_id in ids}
    reader = JournalReader(journal)
    try:
        for event in reader.search(lambda text: _is_of(text, wanted), after=after, until=until, backwards=True):
            if event.id in ids:
                yield event
    except FileNotFoundError:
        return


def _is_of(text: bytes, ids: Collection[bytes]) -> bool:
    """Whether it may be an event of one of these ids; true of many lines, and of one that begins otherwise than ours."""
    is_own_line = text.startswith(_OWN) and text.find(b"\n") in {-1, len(text) - 1}
    return not is_own_line or text[len(_OWN) : text.find(b'"', len(_OWN))] in ids


def lines_behind(journal: Path, span: Span, cursor: int) -> int:
    """How many events have come since, as far as one window goes; blocks."""
    end = cursor + SCANNED_BYTES if span.until is None else min(span.until, cursor + SCANNED_BYTES)
    count = 0
    with reading(journal) as file:
        file.seek(cursor)
        while cursor < end and (chunk := file.read(min(_CHUNK_BYTES, end - cursor))):
            count += chunk.count(b"\n")
            cursor += len(chunk)
    return count
