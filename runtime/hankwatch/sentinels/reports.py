"""Reports: what the journal's ``sentinel.output`` events amount to as files (spec sentinels 9, design 10).

A report file is ``startBytes`` bytes that were there before, then one entry per output with that path, in
journal order. So a file that was truncated or deleted can be completed from the journal at any time.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from hankwatch.core.errors import PathRefused
from hankwatch.core.files import write_all
from hankwatch.events.envelope import Event, EventData
from hankwatch.events.observers import ReportPlan
from hankwatch.sentinels.report_files import ReportPath, opened, opened_to_read, recorded_path, replace

REPORT_TYPES = frozenset({"sentinel.loaded", "sentinel.triggered", "sentinel.output", "sentinel.unloaded"})
"""The events that a report is folded from."""
DEFAULT_JOIN = "\n---\n"

ReadJournal = Callable[[int, Collection[str]], Iterable[Event]]
"""``read(after, types)``: the journal's events of these types after a cursor."""

_ESCAPE = re.compile(r"\\([ntr\\])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def unescape_join(join_string: str) -> str:
    r"""``\n \t \r \\`` replaced, read left to right; any other backslash stays."""
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], join_string)


def content_text(content: Any) -> str:
    """The content of an output as text: a structured one as compact JSON."""
    return content if isinstance(content, str) else orjson.dumps(content).decode()


@dataclass(frozen=True, slots=True)
class Entry:
    """What one output adds to its files."""

    log_file: str
    data: bytes
    last_value_file: str | None
    value: bytes


def render_entry(report: Mapping[str, Any], triggered: EventData | None, output: Event) -> Entry:
    """One output as bytes: ``report`` is what ``sentinel.loaded`` says of it, ``triggered`` its trigger's data."""
    data = output.data
    if data.get("outputType") == "structured":
        entry = orjson.dumps(data["content"], option=orjson.OPT_APPEND_NEWLINE)
        pretty = orjson.dumps(data["content"], option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        return Entry(report["logFile"], entry, report.get("lastValueFile"), pretty)
    text = content_text(data["content"])
    if report["format"] == "text":
        entry = f"{report['joinString']}{text}\n".encode()
    else:
        line = {
            "text": text,
            "timestamp": output.timestamp,
            "sentinelId": data["sentinelId"],
            "triggerNumber": data["triggerNumber"],
            "cause": data.get("cause"),
            "eventIds": (triggered or {}).get("eventIds", []),
            "cost": data["cost"],
            "truncated": data.get("truncated", False),
        }
        entry = orjson.dumps(line) + b"\n"
    return Entry(report["logFile"], entry, report.get("lastValueFile"), text.encode())


class ReportFold:
    """Follows a journal and tells what each output adds to which file."""

    def __init__(self) -> None:
        self._reports: dict[tuple[str, str], EventData] = {}
        self._triggered: dict[tuple[str, str], EventData] = {}

    def feed(self, event: Event) -> Entry | None:
        """The entry that this event adds; None for every other event, and for an output of an unknown load."""
        if event.type not in REPORT_TYPES:
            return None
        key = _load_key(event)
        if event.type == "sentinel.loaded" and "report" in event.data:
            self._reports[key] = event.data["report"]
        elif event.type == "sentinel.triggered":
            self._triggered[key] = event.data
        elif event.type == "sentinel.output" and key in self._reports:
            return render_entry(self._reports[key], self._triggered.get(key), event)
        return None


@dataclass(slots=True)
class ReportFile:
    """One file as it should be: from ``file_offset`` on it is the projection from ``projected_offset`` on.

    Both move when someone else changed the file: what is there is kept, and entries go on behind it.
    """

    path: ReportPath
    read: ReadJournal
    start_bytes: int
    """What the first load that named it found there."""
    since: int | None = None
    """The cursor before the first load that named it, so that catching up does not read the whole journal."""
    projected: int = 0
    """Bytes of all entries so far."""
    file_offset: int = field(init=False)
    projected_offset: int = 0

    def __post_init__(self) -> None:
        self.file_offset = self.start_bytes

    def append(self, entry: bytes) -> bool:
        """Write an entry that the journal already has; true when someone else had changed the file.

        Completes a shorter file and writes a missing one anew. Raises ``OSError`` or ``PathRefused`` when it
        cannot; the entry is then written by the next call that can.
        """
        expected = self._expected_size
        self.projected += len(entry)
        with opened(self.path, create=False) as fd:
            size = os.fstat(fd).st_size if fd is not None else -1
            if fd is not None and size == expected:
                write_all(fd, entry)
                return False
        if size > expected:
            return self._go_on_behind(entry)
        return self._complete(entry)

    def catch_up(self) -> None:
        """Complete the file when it is shorter than the journal says, or gone."""
        with opened_to_read(self.path) as fd:
            size = os.fstat(fd).st_size if fd is not None else -1
        if size < self._expected_size:
            self._complete(b"")

    @property
    def _expected_size(self) -> int:
        return self.file_offset + self.projected - self.projected_offset

    def _complete(self, entry: bytes) -> bool:
        """Append what is missing of the projection, whose last bytes are ``entry``."""
        projection = self._projection()
        with opened(self.path, create=False) as fd:
            if fd is not None:
                self.file_offset = min(self.file_offset, os.fstat(fd).st_size)
                kept = _read_from(fd, self.file_offset)
                wanted = projection[self.projected_offset :]
                if wanted.startswith(kept):
                    write_all(fd, wanted[len(kept) :])
                    return False
        if fd is not None:
            return self._go_on_behind(entry)
        self.file_offset, self.projected_offset = 0, 0
        with opened(self.path, create=True) as fd:
            assert fd is not None
            write_all(fd, projection)
        return False

    def _go_on_behind(self, entry: bytes) -> bool:
        with opened(self.path, create=True) as fd:
            assert fd is not None
            self.file_offset, self.projected_offset = os.fstat(fd).st_size, self.projected - len(entry)
            write_all(fd, entry)
        return True

    def _projection(self) -> bytes:
        entries = map(ReportFold().feed, self.read(self.since or 0, REPORT_TYPES))
        return b"".join(entry.data for entry in entries if entry is not None and entry.log_file == self.path.shown)


@dataclass(slots=True)
class ReportWriter:
    """The report of one load of a sentinel."""

    log: ReportFile
    last_value: ReportPath | None
    format: Literal["text", "jsonl"]
    join_string: str
    """Escapes resolved."""
    _report: EventData = field(default_factory=dict)
    _unwritten_value: bytes | None = None

    def plan(self) -> ReportPlan:
        """What ``sentinel.loaded`` says of it."""
        return ReportPlan(
            log_file=self.log.path.shown,
            last_value_file=self.last_value.shown if self.last_value else None,
            format=self.format,
            join_string=self.join_string if self.format == "text" else None,
            start_bytes=self.log.start_bytes,
        )

    def loaded(self, event: Event) -> None:
        """The load was journaled; entries are rendered as that event says."""
        self._report = event.data["report"]
        if self.log.since is None:
            self.log.since = event.cursor - event.size_bytes

    def write(self, triggered: EventData, output: Event) -> bool:
        """Write the entry of an output that was just emitted; true when someone else had changed the file.

        Raises ``OSError`` or ``PathRefused``; what is missing then is written by the next call that can.
        """
        entry = render_entry(self._report, triggered, output)
        self._unwritten_value = entry.value if self.last_value else None
        changed = self.log.append(entry.data)
        self._write_value()
        return changed

    def catch_up(self) -> None:
        """Write what earlier failures left out. Raises ``OSError`` or ``PathRefused``."""
        self.log.catch_up()
        self._write_value()

    def _write_value(self) -> None:
        if self.last_value is not None and self._unwritten_value is not None:
            replace(self.last_value, self._unwritten_value)
            self._unwritten_value = None


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One file that ``rebuild`` wrote, or why it could not."""

    path: str
    """Relative to the execution directory."""
    entries: int
    error: str | None = None


def rebuild(journal: Iterable[Event], execution_dir: Path, sentinel_id: str | None = None) -> list[Rebuilt]:
    """Write all reports of an execution anew from its journal; of one sentinel with ``sentinel_id``.

    Keeps the first ``startBytes`` of each file. The caller holds the execution's lock, so that no live run
    writes at the same time. Files that cannot be written are named in the answer, the others are written.
    """
    fold, logs, values, wanted = ReportFold(), dict[str, _Log](), dict[str, bytes](), set[str]()
    for event in journal:
        entry = fold.feed(event)
        report = event.data.get("report") if event.type == "sentinel.loaded" else None
        if report is not None:
            logs.setdefault(report["logFile"], _Log(report["startBytes"]))
            if sentinel_id in {None, event.data["sentinelId"]}:
                wanted |= {report["logFile"], report.get("lastValueFile") or report["logFile"]}
        if entry is not None:
            logs[entry.log_file].entries.append(entry.data)
            if entry.last_value_file is not None:
                values[entry.last_value_file] = entry.value
    done = [_rewrite(execution_dir, name, log) for name, log in logs.items() if name in wanted]
    return done + [_rewrite(execution_dir, name, _Log(0, [value])) for name, value in values.items() if name in wanted]


@dataclass(slots=True)
class _Log:
    start_bytes: int
    entries: list[bytes] = field(default_factory=list)


def _rewrite(execution_dir: Path, shown: str, log: _Log) -> Rebuilt:
    try:
        path = recorded_path(execution_dir, shown)
        entries = b"".join(log.entries)
        with opened_to_read(path) as fd:
            content = _read_from(fd, 0) if fd is not None else None
        wanted = entries if content is None else content[: log.start_bytes] + entries
        # Deleted during the run, and written anew without what was there before: whole as it is.
        if content not in {wanted, entries}:
            replace(path, wanted)
    except (OSError, PathRefused) as error:
        return Rebuilt(shown, 0, str(error))
    return Rebuilt(shown, len(log.entries))


def _read_from(fd: int, offset: int) -> bytes:
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(offset)
        return file.read()


def _load_key(event: Event) -> tuple[str, str]:
    return event.data["sentinelId"], event.data["codonId"]
