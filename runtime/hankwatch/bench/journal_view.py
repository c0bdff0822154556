"""The part of a journal that is looked at: one run, one codon, each event once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hankwatch.events.envelope import Event

_RUN_EDGES = frozenset({"RunStarted", "RunCompleted", "RunFailed", "RunCrashed"})


def transition(event: Event) -> str:
    """The kind of a ``state.transition``; empty for every other event."""
    return str(event.data.get("transitionType")) if event.type == "state.transition" else ""


@dataclass(slots=True)
class Part:
    """Says of each event, in order, whether it belongs to the run and codon asked for.

    A codon's events are those between the first that names it and the next codon's or the run's end, whether
    they name it or not, as its sentinels saw them (spec sentinels 5); its CodonStarted came before their load.
    """

    run: str | None
    """Run id, or None for all of the journal."""
    codon: str | None
    """Runtime or authored codon id, or None for all."""
    codons: dict[str, None] = field(default_factory=dict)
    """The codons met so far, in order."""
    _run: str = ""
    _codon: str = ""

    def covers(self, event: Event) -> bool:
        """Whether this event, the next of the journal, belongs to it."""
        kind = transition(event)
        if kind == "RunStarted":
            self._run = started_run(event)
        if self.run is not None and self._run != self.run:
            return False
        if kind in _RUN_EDGES:
            self._codon = ""
        named = event.data.get("codonId")
        entered = isinstance(named, str) and named not in {"", self._codon}
        if isinstance(named, str) and entered:
            self._codon = named
            self.codons[named] = None
        if self.codon is None:
            return True
        return self.codon in {self._codon, self._codon.partition("#")[0]} and not (entered and kind == "CodonStarted")


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
    _ids: set[str] | None = None

    def again(self, event: Event) -> bool:
        """Whether this event, the next of the journal, was there before in its run."""
        if transition(event) == "RunStarted":
            self._run_start, self._highest, self._ids = self._count, "", None
        if self._ids is None and event.id <= self._highest:
            before = list(self.reread(self._count))[self._run_start :]
            self._ids = {earlier.id for earlier in before}
        self._count += 1
        self._highest = max(self._highest, event.id)
        if self._ids is None:
            return False
        size = len(self._ids)
        self._ids.add(event.id)
        return len(self._ids) == size
