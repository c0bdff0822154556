"""Failed triggers of an ended run, carried out again from the journal (spec sentinels 5).

A trigger that failed or was abandoned is named in the journal by a ``sentinel.error`` with its event ids. Those
events are read back and put to the sentinel as it is configured now, in a new load (``sentinel.loaded`` source
``retry`` … ``sentinel.unloaded``) whose outputs go on in the sentinel's report. What succeeded, then or in an
earlier retry, is not repeated; what fails again can be retried again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hankwatch.core.clock import Clock
from hankwatch.core.text import shorten
from hankwatch.events.catalogue import routing
from hankwatch.events.codec import parse_stamp
from hankwatch.events.envelope import Event, EventData, Routing
from hankwatch.events.run import CodonStarted, StateTransition
from hankwatch.llm.client import ModelClient
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.crash import LIFECYCLE_TYPES
from hankwatch.sentinels.fire import Failure
from hankwatch.sentinels.manager import SentinelManager
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.source import SentinelSource
from hankwatch.sentinels.strategies import Batch, Cause
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.stream import EventStream

_FAILED = frozenset({"llm-call-failed", "template-render-failed", "structured-output-invalid"})
_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Retried:
    """What became of one trigger; ``trigger_number`` is the one that it had when it failed."""

    sentinel_id: str
    codon_id: str
    trigger_number: int
    event_count: int
    outcome: Literal["done", "failed", "impossible"]
    """``impossible``: it could not be tried, for ``reason``."""
    reason: str | None = None


@dataclass(slots=True)
class FailedTrigger:
    """A trigger that came to nothing, as the journal tells."""

    sentinel_id: str
    codon_id: str
    base_codon_id: str
    number: int
    event_ids: tuple[str, ...] | None
    """None where the journal does not say which events were its own."""
    cause: Cause = Cause.DRAIN
    """Why it fired, where that is known."""
    at: str | None = None
    """When it fired; None for one that never got that far."""

    def retried(self, outcome: Literal["done", "failed", "impossible"], reason: str | None = None) -> Retried:
        """This trigger, with what became of it."""
        short = None if reason is None else shorten(reason, _REASON_CHARS)
        count = len(self.event_ids or ())
        return Retried(self.sentinel_id, self.codon_id, self.number, count, outcome, short)


@dataclass(slots=True)
class FailedTriggers:
    """The triggers that failed and have not succeeded since, folded from a journal."""

    _failed: dict[tuple[str, str, object], FailedTrigger] = field(default_factory=dict)
    _triggered: dict[tuple[str, str, int], EventData] = field(default_factory=dict)
    """Of the current load of each sentinel."""
    _unknown: int = 0

    def feed(self, event: Event) -> None:
        """Take one event of the journal; all of them in order."""
        if event.type not in LIFECYCLE_TYPES:
            return
        data = event.data
        if event.type == "sentinel.loaded":
            sentinel = (data["sentinelId"], data["codonId"])
            self._triggered = {key: value for key, value in self._triggered.items() if key[:2] != sentinel}
        elif event.type == "sentinel.triggered":
            self._triggered[_key(data)] = data
        elif event.type == "sentinel.output":
            ids = self._triggered.pop(_key(data), {}).get("eventIds")
            self._failed.pop((data["sentinelId"], data["codonId"], tuple(ids or ())), None)
        elif event.type == "sentinel.error":
            self._fail(data)

    def of(self, sentinel_id: str | None) -> dict[tuple[str, str], list[FailedTrigger]]:
        """Them by sentinel and codon, in the order in which they failed first; of one sentinel when it is named."""
        found: dict[tuple[str, str], list[FailedTrigger]] = {}
        for trigger in self._failed.values():
            if sentinel_id in {None, trigger.sentinel_id}:
                found.setdefault((trigger.sentinel_id, trigger.codon_id), []).append(trigger)
        return found

    def _fail(self, data: EventData) -> None:
        if data["errorType"] in _FAILED and "triggerNumber" in data:
            self._add(data, data["triggerNumber"], data.get("eventIds"))
        elif data["errorType"] == "abandoned":
            for number, ids in zip(data.get("triggerNumbers", ()), _parts(data), strict=False):
                self._add(data, number, ids)
        elif data["errorType"] == "queue-overflow":
            for number in data.get("triggerNumbers", ()):
                self._add(data, number, None)

    def _add(self, data: EventData, number: int, ids: Sequence[str] | None) -> None:
        sentinel_id, codon_id = data["sentinelId"], data["codonId"]
        triggered = self._triggered.get((sentinel_id, codon_id, number), {})
        ids = ids if ids is not None else triggered.get("eventIds")
        trigger = FailedTrigger(
            sentinel_id,
            codon_id,
            data.get("baseCodonId") or codon_id.partition("#")[0],
            number,
            None if ids is None else tuple(ids),
            Cause(triggered.get("cause") or Cause.DRAIN),
            triggered.get("at"),
        )
        self._unknown += trigger.event_ids is None
        identity: object = self._unknown if trigger.event_ids is None else trigger.event_ids
        self._failed.setdefault((sentinel_id, codon_id, identity), trigger)


async def retry(
    stream: EventStream,
    model: ModelClient,
    sandbox: Sandbox,
    *,
    managed_dir: Path,
    agent_root: Path,
    clock: Clock,
    sources: Mapping[str, Sequence[SentinelSource]],
    sentinel_id: str | None = None,
    run_id: str | None = None,
    persistence: bool = True,
) -> list[Retried]:
    """Carry out once more what failed; each trigger at most once, in the order in which they failed.

    What a crash left loaded is closed first, so that what it was doing is retried too.

    Args:
        stream: Live, on the run's own journal. Opening that takes the run's lock, which refuses a live run.
        model: Answers; warmed up where it is a router.
        sandbox: Entered.
        managed_dir: The execution's managed folder, with that journal.
        agent_root: Where reports with a ``/`` in their name lie.
        clock: Real time.
        sources: The sentinels of each codon by its authored id, as ``LoadedHank.sentinels`` has them.
        sentinel_id: Only this sentinel's triggers.
        run_id: The run whose triggers; None for the latest.
        persistence: Conversations are on disk.

    Returns:
        One line for each failed trigger, those that could not be tried included; empty when nothing had failed.

    Raises:
        InfrastructureError: the journal cannot be written.
    """
    manager = SentinelManager(
        stream,
        model,
        sandbox,
        managed_dir=managed_dir,
        agent_root=agent_root,
        clock=clock,
        persistence=persistence,
    )
    results: list[Retried] = []
    async with manager:
        manager.close_left_loaded()
        journal = JournalReader(managed_dir / "events" / "events.jsonl")
        failed, scopes = _read(journal, run_id)
        groups = failed.of(sentinel_id)
        events = _events(
            journal, {i for group in groups.values() for trigger in group for i in trigger.event_ids or ()}
        )
        for (name, codon_id), group in groups.items():
            source = next((s for s in sources.get(group[0].base_codon_id, ()) if s.id == name), None)
            scope = scopes.get(codon_id) or CodonScope(codon_id, group[0].base_codon_id, codon_id, None, "")
            results += await _retry_group(manager, group, source, scope, events)
    return results


def _read(journal: JournalReader, run_id: str | None) -> tuple[FailedTriggers, dict[str, CodonScope]]:
    """What failed in a run (the latest without an id) and in its retries, and the codons it was seen in."""
    failed, scopes = FailedTriggers(), dict[str, CodonScope]()
    meant = run_id is None
    for event in journal.read(types={*LIFECYCLE_TYPES, CodonStarted.TYPE, StateTransition.TYPE}):
        if event.data.get("transitionType") == "RunStarted":
            meant = run_id in {None, event.data.get("runId")}
            if run_id is None:
                failed, scopes = FailedTriggers(), {}
        elif meant:
            failed.feed(event)
            if event.type == CodonStarted.TYPE:
                scopes[event.data["codonId"]] = _scope(event.data)
    return failed, scopes


def _events(journal: JournalReader, ids: Collection[str]) -> dict[str, Event]:
    """Those events, as the sentinels saw them."""
    found: dict[str, Event] = {}
    for event in journal.read() if ids else ():
        if event.id in ids and routing(event.type, event.data) is not Routing.NEVER:
            found.setdefault(event.id, event)
    return found


async def _retry_group(
    manager: SentinelManager,
    group: Sequence[FailedTrigger],
    source: SentinelSource | None,
    scope: CodonScope,
    events: Mapping[str, Event],
) -> list[Retried]:
    if source is None:
        reason = f"the hank's codon {scope.base_codon_id!r} has no such sentinel any more"
        return [trigger.retried("impossible", reason) for trigger in group]
    batches = [(trigger, _batch(trigger, events)) for trigger in group]
    possible = [(trigger, batch) for trigger, batch in batches if isinstance(batch, Batch)]
    results = [trigger.retried("impossible", batch) for trigger, batch in batches if isinstance(batch, str)]
    if not possible:
        return results
    async with manager.attach(scope, [replace(source, source="retry")]) as attached:
        if attached.failures:
            reason = f"it cannot be loaded: {attached.failures[0].reason}"
            return results + [trigger.retried("impossible", reason) for trigger, _ in possible]
        outcomes = await attached.carry_out([batch for _, batch in possible])
    results += [_outcome(trigger, outcome) for (trigger, _), outcome in zip(possible, outcomes, strict=False)]
    unloaded = "the sentinel was unloaded because of its failures before"
    return results + [trigger.retried("impossible", unloaded) for trigger, _ in possible[len(outcomes) :]]


def _outcome(trigger: FailedTrigger, failure: Failure | None) -> Retried:
    return trigger.retried("done") if failure is None else trigger.retried("failed", failure.message)


def _batch(trigger: FailedTrigger, events: Mapping[str, Event]) -> Batch | str:
    """The trigger's batch, or why there is none."""
    if not trigger.event_ids:
        return "the journal does not say which events it was for; `hankwatch try` shows what a sentinel would do"
    found = [events[id_] for id_ in trigger.event_ids if id_ in events]
    if missing := len(trigger.event_ids) - len(found):
        return f"{missing} of its {len(trigger.event_ids)} events cannot be read from the journal"
    at_ms = parse_stamp(trigger.at) if trigger.at is not None else None
    return Batch(tuple(found), trigger.cause, found[-1].at_ms if at_ms is None else at_ms)


def _parts(data: Mapping[str, Any]) -> Iterable[list[str] | None]:
    """The event ids of each abandoned trigger; None where the journal has them only all together."""
    ids, numbers = data.get("eventIds") or [], data.get("triggerNumbers") or []
    counts = data.get("eventCounts") or (
        [1] * len(ids) if len(ids) == len(numbers) else [len(ids)] * (len(numbers) == 1)
    )
    if sum(counts) != len(ids) or len(counts) != len(numbers):
        return [None] * len(numbers)
    ends = [sum(counts[: place + 1]) for place in range(len(counts))]
    return [ids[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _key(data: EventData) -> tuple[str, str, int]:
    return data["sentinelId"], data["codonId"], data["triggerNumber"]


def _scope(started: EventData) -> CodonScope:
    codon_id = started["codonId"]
    return CodonScope(
        codon_id,
        started.get("baseCodonId") or codon_id.partition("#")[0],
        started.get("codonName") or codon_id,
        started.get("codonDescription"),
        started.get("startTime") or "",
    )
