"""What a home's journal tells its watches: events that match, and files that were written (spec watches 7).

The journal is read rather than the bus listened to, so an engine in another process, or one that comes back
after a crash, sees the same events: each watch looks at what lies behind its own cursor.
"""

import os.path
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hankwatch.events.envelope import Event
from hankwatch.matching.triggers import SequenceTrigger, TriggerIndex
from hankwatch.stream.reader import JournalReader
from hankwatch.watches.specs import DocumentSpec, EventSpec
from hankwatch.watches.watch import Watch

_AT_ONCE: Final = 5_000
"""Events that are read before others have their turn."""
Aim = tuple[str, int]
"""Id and generation of a watch."""


@dataclass(frozen=True, slots=True)
class Tripped:
    """A watch about which something happened."""

    watch_id: str
    generation: int
    event: Event
    count: int = 1
    """Matches since the last look, this one being the latest."""


@dataclass(slots=True)
class _Follower:
    """Reads on behind a cursor. Watches of single events share one, since such triggers remember nothing."""

    index: TriggerIndex[Aim]
    cursor: int
    has_more: bool = False

    def read(self, journal: Path) -> Iterator[tuple[Event, list[Aim]]]:
        count = 0
        for event in JournalReader(journal).read(self.cursor, limit=_AT_ONCE):
            self.cursor, count = event.cursor, count + 1
            yield event, [match.key for match in self.index.route(event)]
        self.has_more = count == _AT_ONCE


@dataclass(slots=True)
class Feed:
    """Reads one journal for the watches of its home; used by one task at a time.

    Args:
        home: The execution directory; paths of documents are relative to it.
        journal: Its journal.
        workspace: What paths of ``file.updated`` are relative to.
        on_overrun: Gets the id of a watch whose patterns take too long, and why; it is not asked again.
    """

    home: Path
    journal: Path
    workspace: Path
    on_overrun: Callable[[str, str], None]
    _shared: _Follower = field(init=False)
    _sequences: dict[Aim, _Follower] = field(default_factory=dict)
    _documents: dict[str, set[Aim]] = field(default_factory=dict)
    """By the file they watch."""
    _paths: dict[Aim, str] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)
    _aims: dict[str, Aim] = field(default_factory=dict)
    _past: dict[Aim, int] = field(default_factory=dict)
    """Cursor behind which a watch still has to look."""
    _size: int = -1

    def __post_init__(self) -> None:
        self._shared = _Follower(self._fresh_index(), 0)

    @property
    def followed(self) -> AbstractSet[str]:
        """Ids of the watches."""
        return self._aims.keys()

    @property
    def has_more(self) -> bool:
        """Whether the last look has left something behind."""
        return any(follower.has_more for follower in (self._shared, *self._sequences.values()))

    def follow(self, versions: Mapping[str, int], read: Callable[[Sequence[str]], Iterable[Watch]]) -> None:
        """Follow exactly these watches from now on, each from its own cursor.

        Args:
            versions: By id; those whose number has not changed are not read again.
            read: The watches of some ids.
        """
        for watch_id in self._aims.keys() - versions.keys():
            self._drop(watch_id)
        changed = [watch_id for watch_id, version in versions.items() if self._versions.get(watch_id) != version]
        for watch in read(changed) if changed else ():
            aim = (watch.id, watch.generation)
            if self._aims.get(watch.id) != aim:
                self._drop(watch.id)
                self._add(aim, watch)
        self._versions = dict(versions)

    def read(self) -> list[Tripped]:
        """What has happened since the last look, once per watch; not all of a long journal at once.

        Raises:
            OSError: the journal cannot be read.
        """
        tripped = dict[Aim, Tripped]()
        if not self._aims or not self._has_grown():
            return []
        for event, aims in self._shared.read(self.journal):
            for aim in (*aims, *self._about(event)):
                self._note(tripped, aim, event)
        for follower in self._sequences.values():
            for event, aims in follower.read(self.journal):
                for aim in aims:
                    self._note(tripped, aim, event)
        return list(tripped.values())

    def _has_grown(self) -> bool:
        try:
            size = self.journal.stat().st_size
        except FileNotFoundError:
            return False
        grown, self._size = size != self._size, size
        return grown or self.has_more

    def _add(self, aim: Aim, watch: Watch) -> None:
        spec = watch.verifier
        if isinstance(spec, EventSpec) and isinstance(spec.trigger, SequenceTrigger):
            follower = self._sequences[aim] = _Follower(self._fresh_index(), watch.cursor)
            follower.index.add(aim, spec.trigger)
        else:
            if isinstance(spec, EventSpec):
                self._shared.index.add(aim, spec.trigger)
            elif isinstance(spec, DocumentSpec):
                self._paths[aim] = path = os.path.normpath(self.home / spec.path)
                self._documents.setdefault(path, set()).add(aim)
            # What the others saw there is behind their own cursors.
            is_first = len(self._aims) == len(self._sequences)
            self._shared.cursor = watch.cursor if is_first else min(self._shared.cursor, watch.cursor)
        self._aims[aim[0]], self._past[aim], self._size = aim, watch.cursor, -1

    def _drop(self, watch_id: str) -> None:
        if (aim := self._aims.pop(watch_id, None)) is None:
            return
        del self._past[aim]
        if self._sequences.pop(aim, None) is None:
            self._shared.index.remove(aim)
        if (path := self._paths.pop(aim, None)) is not None:
            self._documents[path].remove(aim)

    def _note(self, tripped: dict[Aim, Tripped], aim: Aim, event: Event) -> None:
        if event.cursor > self._past[aim]:
            self._past[aim] = event.cursor
            earlier = tripped.get(aim)
            tripped[aim] = Tripped(*aim, event, 1 if earlier is None else earlier.count + 1)

    def _about(self, event: Event) -> Iterable[Aim]:
        if event.type != "file.updated" or not self._documents:
            return ()
        return self._documents.get(os.path.normpath(self.workspace / str(event.data.get("path", ""))), ())

    def _fresh_index(self) -> TriggerIndex[Aim]:
        return TriggerIndex(lambda aim, reason: self.on_overrun(aim[0], reason))
