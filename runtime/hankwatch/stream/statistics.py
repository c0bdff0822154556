"""What a journal holds, and whether it is whole: one pass over the file."""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hankwatch.core.files import reading
from hankwatch.events.envelope import Event
from hankwatch.stream.damage import damage_named
from hankwatch.stream.reader import JournalReader, is_gzipped


@dataclass(slots=True)
class TypeStatistics:
    """What a journal holds of one type."""

    count: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class JournalStatistics:
    """Counts, sizes and everything that is not right."""

    path: Path
    size_bytes: int = 0
    types: dict[str, TypeStatistics] = field(default_factory=dict)
    first: str | None = None
    """Stamp of the first event."""
    last: str | None = None
    """Stamp of the last event."""
    bad_lines: int = 0
    torn_tail_bytes: int = 0
    """Behind the last newline, when they are no whole event; the next writer moves them aside."""
    repeated_ids: int = 0
    """Ids that were there before, within a run or not."""
    backward_stamps: int = 0
    """Events stamped before their predecessor."""
    flags: Counter[str] = field(default_factory=Counter)
    """How often tolerant reading had to help."""
    _last_ms: int = 0

    @property
    def events(self) -> int:
        """All events."""
        return sum(kind.count for kind in self.types.values())

    @property
    def problems(self) -> dict[str, int]:
        """Every count of something wrong, by its JSON name."""
        return {
            "badLines": self.bad_lines,
            "tornTailBytes": self.torn_tail_bytes,
            "repeatedIds": self.repeated_ids,
            "backwardStamps": self.backward_stamps,
        }

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not any(self.problems.values())

    def _take(self, event: Event) -> None:
        kind = self.types.setdefault(event.type, TypeStatistics())
        kind.count += 1
        kind.size_bytes += event.size_bytes
        self.backward_stamps += event.at_ms < self._last_ms
        self._last_ms = max(self._last_ms, event.at_ms)
        self.first = self.first or event.timestamp
        self.last = event.timestamp


def journal_statistics(path: Path) -> JournalStatistics:
    """Read a whole journal, plain or gzipped; memory grows by eight bytes per event.

    Raises:
        UsageError: it cannot be read to its end.
    """
    found, reader, ids = JournalStatistics(path), JournalReader(path), _Ids()
    end = 0
    with damage_named(path):
        found.size_bytes = path.stat().st_size
        for event in reader.read():
            found._take(event)
            ids.add(event.id)
            end = event.cursor
        if end < found.size_bytes and not is_gzipped(path):
            found.torn_tail_bytes = _behind_last_newline(path, end)
    found.bad_lines, found.flags, found.repeated_ids = reader.bad_lines, reader.flags, ids.repeated()
    return found


class _Ids:
    """Counts repeats by hash: a few hundred numbers at a time are compared, never all of them."""

    def __init__(self) -> None:
        self._parts = [array("q") for _ in range(1024)]

    def add(self, name: str) -> None:
        number = hash(name)
        self._parts[number % 1024].append(number)

    def repeated(self) -> int:
        return sum(len(part) - len(set(part)) for part in self._parts)


def _behind_last_newline(path: Path, after: int) -> int:
    behind = 0
    with reading(path) as file:
        file.seek(after)
        for line in file:
            behind = 0 if line.endswith(b"\n") else len(line)
    return behind
