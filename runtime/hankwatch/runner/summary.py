"""What one execution did, folded from its journal: what ``runs`` lists."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

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

    @property
    def outcome(self) -> str:
        """``live``, ``completed``, ``failed``, ``empty`` or, with neither an end nor a holder, ``crashed``."""
        if self.live:
            return "live"
        if self.record is None:
            return "empty"
        return "crashed" if self.record.status == "running" else self.record.status

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
    """Fold one journal."""
    reader, counts = JournalReader(execution.layout.journal), _Counts()
    for event in _events(reader):
        counts.take(event)
    return RunSummary(
        execution,
        live=holder(lock_path(execution.layout.journal)) is not None,
        record=fold(counts.transitions).current,
        fired=counts.seen["sentinel.triggered"],
        failed=counts.seen["sentinel.error"],
        dropped=counts.seen["dropped"],
        bad_lines=reader.bad_lines,
    )


def _events(reader: JournalReader) -> Iterable[Event]:
    return reader.read(types=_TYPES) if reader.path.exists() else ()
