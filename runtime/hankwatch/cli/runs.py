"""``runs``: what ran, how it ended, what its sentinels did; all folded from journals."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hankwatch.app import base_dir
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.events.envelope import Event
from hankwatch.runner.execution import Execution, executions
from hankwatch.runner.state import RunRecord, fold
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader

_SHOWN = 20


@dataclass(slots=True)
class RunSummary:
    """One execution's latest run."""

    execution: Execution
    live: bool
    record: RunRecord | None
    counts: Counter[str] = field(default_factory=Counter)
    """Of the latest run: sentinels' fires, failures and drops."""
    bad_lines: int = 0

    @property
    def outcome(self) -> str:
        """``live``, ``completed``, ``failed`` or, without an end and a holder, ``crashed``."""
        if self.live:
            return "live"
        if self.record is None:
            return "empty"
        return "crashed" if self.record.status == "running" else self.record.status


def summarise(execution: Execution) -> RunSummary:
    """Fold one journal."""
    reader = JournalReader(execution.layout.journal)
    counts: Counter[str] = Counter()
    transitions: list[Event] = []
    for event in _events(reader):
        if event.type == "state.transition":
            transitions.append(event)
            if event.data.get("transitionType") == "RunStarted":
                counts.clear()
        elif event.type == "sentinel.unloaded":
            counts["dropped"] += int(event.data.get("droppedTriggers") or 0)
        else:
            counts[event.type] += 1
    record = fold(transitions).current
    live = holder(lock_path(execution.layout.journal)) is not None
    return RunSummary(execution, live, record, counts, reader.bad_lines)


def _events(reader: JournalReader) -> Iterable[Event]:
    types = {"state.transition", "sentinel.triggered", "sentinel.error", "sentinel.unloaded"}
    return reader.read(types=types) if reader.path.exists() else ()


def runs(*, config: Path | None, as_json: bool) -> int:
    """List the newest runs; always 0."""
    settings, environ = cli_settings(config)
    base = base_dir(settings, environ)
    found = [summarise(execution) for execution in islice(executions(base), _SHOWN)]
    if as_json:
        for run in found:
            output.print_json(_as_json(run))
        return 0
    console = output.stdout()
    if not found:
        console.print(f"No runs under {output.shown_path(base)} yet. `hankwatch demo` makes one.")
        return 0
    rows = output.table("execution", "hank", "outcome", "#codons", "#cost", "#fired", "#failed", "#dropped")
    for run in found:
        record = run.record
        rows.add_row(
            run.execution.name,
            output.shown_path(Path(str(run.execution.meta.get("hankPath", "?")))),
            run.outcome,
            str(len(record.codons) if record else 0),
            output.money(record.cost_usd if record else 0.0),
            str(run.counts["sentinel.triggered"]),
            str(run.counts["sentinel.error"]),
            str(run.counts["dropped"]),
        )
    console.print(rows)
    return 0


def _as_json(run: RunSummary) -> dict[str, object]:
    record = run.record
    return {
        "execution": str(run.execution.layout.root),
        "hank": run.execution.meta.get("hankPath"),
        "run": record.run_id if record else None,
        "outcome": run.outcome,
        "startedAt": record.started_at if record else None,
        "codons": [{"codonId": c.codon_id, "attempt": c.attempt, "status": c.status} for c in record.codons]
        if record
        else [],
        "costUsd": record.cost_usd if record else 0.0,
        "sentinelsFired": run.counts["sentinel.triggered"],
        "sentinelErrors": run.counts["sentinel.error"],
        "droppedTriggers": run.counts["dropped"],
        "badLines": run.bad_lines,
    }
