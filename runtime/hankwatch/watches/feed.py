"""What a home's journal tells its watches: events that match, and files that were written (spec watches 7).

The journal is read rather than the bus listened to, so an engine in another process, or one that comes back
after a crash, sees the same events: each watch looks at what lies behind its own cursor.
"""

import os.path
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hankwatch.events.envelope import Event
from hankwatch.matching.triggers import SequenceTrigger, TriggerIndex
from hankwatch.stream.reader import JournalReader
from hankwatch.watches.specs import DocumentSpec, EventSpec
from hankwatch.watches.watch import Watch

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

    def read(self, journal: Path) -> Iterator[tuple[Event, list[Aim]]]:
        for event in JournalReader(journal).read(self.cursor):
            self.cursor = event.cursor
            yield event, [match.key for match in self.index.route(event)]


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
    _watches: dict[Aim, Watch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shared = _Follower(self._fresh_index(), 0)

    def follow(self, watches: Iterable[Watch]) -> None:
        """Follow exactly these watches from now on, each from its own cursor."""
        wanted = {(watch.id, watch.generation): watch for watch in watches}
        for aim in self._watches.keys() - wanted.keys():
            self._shared.index.remove(aim)
            self._sequences.pop(aim, None)
        new = wanted.keys() - self._watches.keys()
        if not self._watches and new:
            self._shared.cursor = min(wanted[aim].cursor for aim in new)
        for aim in new:
            self._add(aim, wanted[aim])
        self._watches = wanted

    def read(self) -> list[Tripped]:
        """What has happened since the last look, once per watch.

        Raises:
            OSError: the journal cannot be read.
        """
        tripped = dict[Aim, Tripped]()
        if not self._watches or not self.journal.is_file():
            return []
        for event, aims in self._shared.read(self.journal):
            for aim in aims:
                self._note(tripped, aim, event)
            if event.type == "file.updated":
                for aim in self._about(event):
                    self._note(tripped, aim, event)
        for follower in self._sequences.values():
            for event, aims in follower.read(self.journal):
                for aim in aims:
                    self._note(tripped, aim, event)
        return list(tripped.values())

    def _add(self, aim: Aim, watch: Watch) -> None:
        if isinstance(watch.verifier, EventSpec) and isinstance(watch.verifier.trigger, SequenceTrigger):
            follower = _Follower(self._fresh_index(), watch.cursor)
            follower.index.add(aim, watch.verifier.trigger)
            self._sequences[aim] = follower
            return
        if isinstance(watch.verifier, EventSpec):
            self._shared.index.add(aim, watch.verifier.trigger)
        self._shared.cursor = min(self._shared.cursor, watch.cursor)  # what others saw before is behind their cursor

    def _note(self, tripped: dict[Aim, Tripped], aim: Aim, event: Event) -> None:
        if event.cursor > self._watches[aim].cursor:
            earlier = tripped.get(aim)
            tripped[aim] = Tripped(*aim, event, 1 if earlier is None else earlier.count + 1)

    def _about(self, event: Event) -> Iterator[Aim]:
        written = os.path.normpath(self.workspace / str(event.data.get("path", "")))
        for aim, watch in self._watches.items():
            spec = watch.verifier
            if isinstance(spec, DocumentSpec) and os.path.normpath(self.home / spec.path) == written:
                yield aim

    def _fresh_index(self) -> TriggerIndex[Aim]:
        return TriggerIndex(lambda aim, reason: self.on_overrun(aim[0], reason))
