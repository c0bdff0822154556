"""What one execution did, folded from its journal: what ``runs`` lists."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hankwatch.core.contain import contain
from hankwatch.events.envelope import Event
from hankwatch.runner.execution import Execution
from hankwatch.runner.state import RunRecord, fold
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader

_TYPES = {"state.transition", "sentinel.triggered", "sentinel.error", "sentinel.unloaded"}


@dataclass(slots=True)
class RunSummary:
    """An execution's latest run."""

    execution: Execution
    live: bool
    """A process holds the execution."""
    record: RunRecord | None
    """None before the first run."""
    fired: int = 0
    """Triggers of its sentinels."""
    failed: int = 0
    """``sentinel.error`` events."""
    dropped: int = 0
    """Triggers that did not fit into a queue."""
    bad_lines: int = 0
    unreadable: str | None = None
    """Why its journal could not be read or folded, or None."""

    @property
    def outcome(self) -> str:
        """``live``, ``completed``, ``failed``, ``empty``, ``unreadable`` or, with neither end nor holder, ``crashed``."""
        return "unreadable" if self.unreadable is not None else _outcome(self.record, live=self.live)

    def as_json(self) -> dict[str, Any]:
        """One line of ``runs --json``."""
        record = self.record
        codons = record.codons if record else ()
        return {
            "execution": str(self.execution.layout.root),
            "hank": self.execution.meta.get("hankPath"),
            "run": record.run_id if record else None,
            "outcome": self.outcome,
            "startedAt": record.started_at if record else None,
            "codons": [{"codonId": c.codon_id, "attempt": c.attempt, "status": c.status} for c in codons],
            "costUsd": record.cost_usd if record else 0.0,
            "sentinelsFired": self.fired,
            "sentinelErrors": self.failed,
            "droppedTriggers": self.dropped,
            "badLines": self.bad_lines,
            "unreadable": self.unreadable,
        }


@dataclass(slots=True)
class _Counts:
    transitions: list[Event] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def take(self, event: Event) -> None:
        if event.type == "sentinel.unloaded":
            self.seen["dropped"] += int(event.data.get("droppedTriggers") or 0)
        elif event.type != "state.transition":
            self.seen[event.type] += 1
        else:
            self.transitions.append(event)
            if event.data.get("transitionType") == "RunStarted":
                self.seen.clear()


def summarise(execution: Execution) -> RunSummary:
    """Fold one journal; one that cannot be read is summarised as such."""
    summary = RunSummary(execution, live=False, record=None)
    with contain(lambda error: setattr(summary, "unreadable", f"{type(error).__name__}: {error}")):
        summary.live = is_live(execution.layout.journal)
        reader, counts = JournalReader(execution.layout.journal), _Counts()
        for event in reader.read(types=_TYPES) if reader.path.exists() else ():
            counts.take(event)
        summary.record = fold(counts.transitions).of_hank
        summary.fired = counts.seen["sentinel.triggered"]
        summary.failed = counts.seen["sentinel.error"]
        summary.dropped = counts.seen["dropped"]
        summary.bad_lines = reader.bad_lines
    return summary


def is_live(journal: Path) -> bool:
    """Whether a process holds the journal (design "How it runs" 8); not, when its lock may not be looked at."""
    try:
        return holder(lock_path(journal)) is not None
    except OSError:
        return False


def latest_outcome(journal: Path) -> str:
    """How the latest run of a journal ended, in the words of ``RunSummary.outcome``."""
    record = fold(JournalReader(journal).read(types={"state.transition"})).of_hank
    return _outcome(record, live=is_live(journal))


def _outcome(record: RunRecord | None, *, live: bool) -> str:
    if live:
        return "live"
    if record is None:
        return "empty"
    return "crashed" if record.status == "running" else record.status
