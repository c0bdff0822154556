"""Reports as the journal has them, whatever has become of the files (design "How it runs" 10)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from hankwatch.core.contain import contain
from hankwatch.events.envelope import Event
from hankwatch.sentinels.reports import REPORT_TYPES, Entry, ReportFold
from hankwatch.serve.shelf import Span
from hankwatch.serve.views import ReportText, ReportView
from hankwatch.stream.reader import JournalReader

MAX_TEXT_BYTES: Final = 1024 * 1024
"""Of one report, its end."""


@dataclass(slots=True)
class _Report:
    sentinel_id: str
    entries: int = 0
    size_bytes: int = 0
    end: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes, *, keep: bool) -> None:
        self.entries += 1
        self.size_bytes += len(data)
        if keep:
            self.end += data
            del self.end[: max(0, len(self.end) - MAX_TEXT_BYTES)]

    def put(self, data: bytes, *, keep: bool) -> None:
        """A file that only holds its last value."""
        self.entries, self.size_bytes = 0, 0
        self.end.clear()
        self.add(data, keep=keep)


def reports(reader: JournalReader, span: Span) -> list[ReportView]:
    """All reports of a run, by name; blocks for the journal."""
    return [
        ReportView(name=name, sentinel_id=report.sentinel_id, entries=report.entries, size_bytes=report.size_bytes)
        for name, report in sorted(_fold(reader, span, None).items())
    ]


def report(reader: JournalReader, span: Span, name: str) -> ReportText | None:
    """One report with its text; None when the run has written none of that name. Opens no file but the journal."""
    found = _fold(reader, span, name).get(name)
    if found is None:
        return None
    return ReportText(
        name=name,
        sentinel_id=found.sentinel_id,
        entries=found.entries,
        size_bytes=found.size_bytes,
        text=bytes(found.end).decode("utf-8", "replace"),
        omitted_bytes=found.size_bytes - len(found.end),
    )


def _fold(reader: JournalReader, span: Span, wanted: str | None) -> dict[str, _Report]:
    found: dict[str, _Report] = {}
    for event, entry in _entries(reader, span):
        sentinel_id = str(event.data.get("sentinelId"))
        log = found.setdefault(entry.log_file, _Report(sentinel_id))
        log.add(entry.data, keep=entry.log_file == wanted)
        if entry.last_value_file is not None:
            last = found.setdefault(entry.last_value_file, _Report(sentinel_id))
            last.put(entry.value, keep=entry.last_value_file == wanted)
    return found


def _entries(reader: JournalReader, span: Span) -> Iterator[tuple[Event, Entry]]:
    fold = ReportFold()
    try:
        for event in reader.read(span.after, types=REPORT_TYPES):
            if span.until is not None and event.cursor > span.until:
                return
            entry = None
            with contain(lambda _: None):  # a foreign journal can say anything; the run's facts count what does not fit
                entry = fold.feed(event)
            if entry is not None and isinstance(entry.log_file, str) and isinstance(entry.last_value_file, str | None):
                yield event, entry
    except FileNotFoundError:
        return
