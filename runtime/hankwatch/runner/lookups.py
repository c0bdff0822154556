"""What runs and sessions are doing, read from their journals: what watches on them ask (spec watches 4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hankwatch.core.errors import RunNotFound
from hankwatch.events.envelope import Event
from hankwatch.events.run import Info, ServerIdle
from hankwatch.runner.execution import Execution, find_run, open_execution
from hankwatch.runner.sessions import WAITS, WAKE, session_record
from hankwatch.runner.state import RunRecord, fold
from hankwatch.runner.summary import is_live
from hankwatch.runner.verdict import STOPPED
from hankwatch.stream.reader import JournalReader
from hankwatch.watches.shipped import RunFound

_TYPES: Final = {"state.transition", ServerIdle.TYPE, Info.TYPE}


@dataclass(frozen=True, slots=True)
class Executions:
    """Runs and sessions of the executions below a folder; all of them belong to one tenant."""

    base: Path
    tenant: str = "local"

    def find(self, run: str, tenant: str) -> RunFound | None:
        """A run by the beginning of its id, or the latest of an execution; None when there is none.

        Raises:
            UsageError: several are meant.
        """
        if tenant != self.tenant:
            return None
        try:
            found = find_run(run, self.base)
        except RunNotFound:
            return None
        events = _events(found.execution)
        records = {record.run_id: record for record in fold(events).runs}
        record = records.get(found.run) if found.run is not None else next(reversed(records.values()), None)
        if record is None:
            return None
        live = record is next(reversed(records.values())) and is_live(found.execution.layout.journal)
        reason = _reason(events, record.run_id)
        return RunFound(record.run_id, _status(record, events, reason, live=live), reason)

    def state(self, session: str, home: str | None, tenant: str) -> str | None:
        """What a session of an execution does; None when it is not known there."""
        if tenant != self.tenant or home is None:
            return None
        try:
            execution = open_execution(Path(home))
        except RunNotFound:
            return None
        events = _events(execution)
        state = fold(events)
        record = session_record(session, state)
        if record is None:
            return None
        if not is_live(execution.layout.journal):
            return "ended"
        if record.final or state.current is None or record not in state.current.codons:
            return "idle"
        return "waiting" if _waits(events) else "working"


def _events(execution: Execution) -> list[Event]:
    journal = execution.layout.journal
    return list(JournalReader(journal).read(types=_TYPES)) if journal.exists() else []


def _status(record: RunRecord, events: Iterable[Event], reason: str, *, live: bool) -> str:
    if record.status == "failed" and (reason == "stopped" or _was_stopped(record)):
        return "stopped"
    if record.status != "running":
        return record.status
    if not live:
        return "crashed"
    return "waiting" if _waits(events) else "running"


def _was_stopped(record: RunRecord) -> bool:
    """Whether somebody ended it in the middle of its last codon."""
    why = record.codons[-1].failure_reason if record.codons else None
    return why is not None and why.get("message") == STOPPED


def _waits(events: Iterable[Event]) -> bool:
    """Whether the last that was told is that it waits: for ``next``, or for watches."""
    waits = False
    for event in events:
        if event.type == "state.transition":
            waits = False
        elif event.type == ServerIdle.TYPE or event.data.get("code") == WAITS:
            waits = True
        elif event.data.get("code") == WAKE:
            waits = False
    return waits


def _reason(events: Iterable[Event], run_id: str) -> str:
    """With which words a run ended."""
    ends = {"RunCompleted", "RunFailed"}
    said = ""
    for event in events:
        if event.data.get("transitionType") in ends and event.data.get("runId") == run_id:
            inner = event.data.get("transition")
            data = inner.get("data") if isinstance(inner, dict) else None
            said = str(data.get("reason") or "") if isinstance(data, dict) else ""
    return said
