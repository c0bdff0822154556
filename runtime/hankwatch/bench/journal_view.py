"""The part of a journal that is looked at: one run, one codon, each event once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from hankwatch.bench.met import MetIds
from hankwatch.events.envelope import Event

_RUN_EDGES = frozenset({"RunStarted", "RunCompleted", "RunFailed", "RunCrashed"})
_SCOPE_ENDS = frozenset({"codon-complete", "shutdown"})
"""Why sentinels are unloaded when nothing is wrong with them."""


def transition(event: Event) -> str:
    """The kind of a ``state.transition``; empty for every other event."""
    return str(event.data.get("transitionType")) if event.type == "state.transition" else ""


class Edge(NamedTuple):
    """What an event means for the sentinels of the part that is looked at."""

    left: bool = False
    """The codon that was watched is over before this event."""
    entered: str = ""
    """Runtime id of the codon that is watched from here on; empty for no change."""
    behind: bool = False
    """``entered`` holds only behind this event, which its sentinels did not see."""

    @property
    def changes(self) -> bool:
        """Whether it means anything."""
        return self.left or self.entered != ""


NO_EDGE = Edge()


@dataclass(slots=True)
class Part:
    """Says of each event, in order, whether it belongs to the run and codon asked for, and whose sentinels watch.

    A codon is watched from its CodonStarted, which comes before its sentinels' load, to the unloading of its
    sentinels, the next codon or the run's end, by events that name it and events that name none (spec sentinels
    5). A journal that tells no CodonStarted enters a codon with the first event that names it.
    """

    run: str | None
    """Run id, or None for all of the journal."""
    codon: str | None
    """Runtime or authored codon id, or None for all."""
    codons: dict[str, None] = field(default_factory=dict)
    """The codons met so far, in order."""
    edge: Edge = NO_EDGE
    """What the last event meant."""
    _run: str = ""
    _watched: str = ""
    _current: str = ""
    _over: str = ""
    _tells_starts: bool = False

    def covers(self, event: Event) -> bool:
        """Whether this event, the next of the journal, belongs to it."""
        kind = transition(event)
        if kind == "RunStarted":
            self._run, self._tells_starts = started_run(event), False
        in_run = self.run is None or self._run == self.run
        codon = self._next(event, kind) if in_run else ""
        if codon != self._current:
            self._over, self._current = self._current, codon
            self.codons.update({codon: None} if codon else {})
        watched = codon if self.codon is None or self.codon in {codon, base_id(codon)} else ""
        changed, before, self._watched = watched != self._watched, self._watched, watched
        behind = kind == "CodonStarted"
        self.edge = Edge(before != "", watched, behind) if changed else NO_EDGE
        return in_run and (self.codon is None or (watched != "" and not (changed and behind)))

    def _next(self, event: Event, kind: str) -> str:
        """The codon that is watched with, or right behind, this event."""
        if kind in _RUN_EDGES:
            self._over = ""
            return ""
        named = event.data.get("codonId")
        if not isinstance(named, str) or named in {"", self._current}:
            over = event.type == "sentinel.unloaded" and event.data.get("reason") in _SCOPE_ENDS
            return "" if over and named == self._current else self._current
        if kind == "CodonStarted":
            self._tells_starts = True
            return named
        if event.type.startswith("sentinel."):
            # A resumed run goes on with a codon that has started before; a retry's load watches nothing.
            loaded = event.type == "sentinel.loaded" and event.data.get("source") != "retry"
            return named if loaded and not self._current else self._current
        return self._current if self._tells_starts or named == self._over else named


def base_id(codon: str) -> str:
    """The authored id of a runtime id."""
    return codon.partition("#")[0]


def started_run(event: Event) -> str:
    """The id of the run that a RunStarted begins."""
    inner = event.data.get("transition")
    data = inner.get("data") if isinstance(inner, dict) else None
    return str(data.get("runId", "")) if isinstance(data, dict) else ""


@dataclass(slots=True)
class Repeats:
    """Finds events that come twice within a run (spec events).

    While ids increase, as ours do, nothing is remembered; the first that does not makes it read the ids before
    it once more.
    """

    reread: Callable[[int], Iterable[Event]]
    """The first n events once more."""
    _count: int = 0
    _run_start: int = 0
    _highest: str = ""
    _ids: MetIds | None = None

    def again(self, event: Event) -> bool:
        """Whether this event, the next of the journal, was there before in its run."""
        if transition(event) == "RunStarted":
            self.close()
            self._run_start, self._highest, self._ids = self._count, "", None
        if self._ids is None and event.id <= self._highest:
            self._ids = MetIds()
            for earlier in islice(self.reread(self._count), self._run_start, None):
                self._ids.add(earlier.id)
        self._count += 1
        self._highest = max(self._highest, event.id)
        return self._ids is not None and not self._ids.add(event.id)

    def close(self) -> None:
        """Forget what is remembered."""
        if self._ids is not None:
            self._ids.close()
