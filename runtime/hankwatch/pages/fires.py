"""What sentinels did: their fires, what each said, what it cost, what was lost."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from hankwatch.events.envelope import Event, EventData
from hankwatch.pages.kept import Kept
from hankwatch.pages.limits import Limits
from hankwatch.pages.visible import NO_TEXT, Excerpt
from hankwatch.pages.words import NOTHING, Cost

_MAX_LOADS = 2_000
_MOST_USD = 1e12
FireOutcome = Literal["answered", "failed", "retried", "open"]


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a prompt."""

    role: str
    text: Excerpt


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A model call, from the call log."""

    id: str
    model: str
    messages: tuple[Said, ...]
    cost: Cost
    tokens_in: int | None
    tokens_out: int | None
    attempts: int
    duration_ms: int | None
    error: str
    """Why it failed; empty when it was answered."""


@dataclass(slots=True, eq=False)
class CitedEvent:
    """An event that a fire was made of."""

    anchor: int
    """Its number on the page, in journal order."""
    at_ms: int
    type: str
    failed: bool
    gist: Excerpt
    payload: Excerpt
    size_bytes: int
    fires: list["Fire"] = field(default_factory=list)
    """Those it caused."""


@dataclass(slots=True, eq=False)
class Fire:
    """One trigger of a sentinel, and what came of it."""

    anchor: int
    """Its number on the page, in journal order."""
    sentinel_id: str
    codon_id: str
    number: int
    at_ms: int
    cause: str
    event_count: int
    event_ids: tuple[str, ...] = ()
    """Those of them that the page shows."""
    cursor: int = 0
    """Of its trigger in the journal."""
    ended_cursor: int = 0
    """Of its answer or failure; 0 while it is open."""
    outcome: FireOutcome = "open"
    ended_ms: int | None = None
    content: Excerpt = NO_TEXT
    structured: bool = False
    error: str = ""
    abandoned: bool = False
    """It failed because time was up."""
    cost: Cost = NOTHING
    truncated: bool = False
    """The model stopped at its token limit."""
    omitted: int = 0
    """Events that its prompt did not show whole."""
    call_id: str | None = None
    events: list[CitedEvent] = field(default_factory=list)
    calls: list[CallFacts] = field(default_factory=list)
    again: "Fire | None" = None
    """The later one that answered what this one failed to."""

    @property
    def others(self) -> int:
        """Its events that the page does not show."""
        return max(0, self.event_count - len(self.events))


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something a sentinel could not do."""

    at_ms: int
    sentinel_id: str
    kind: str
    """The contract's ``errorType``."""
    message: str
    count: int
    """Triggers that were lost by it; 0 when none was."""


@dataclass(slots=True)
class SentinelFacts:
    """One sentinel, over all codons it watched."""

    id: str
    model: str = ""
    trigger_type: str = ""
    strategy: str = ""
    source: str = ""
    report: str = ""
    """Its report file, relative to the execution directory."""
    codons: dict[str, None] = field(default_factory=dict)
    """Some of those it watched, in order."""
    loads: int = 0
    loaded: bool = False
    ended: str = ""
    """Why it was unloaded last."""
    fires: Kept[Fire] = field(default_factory=lambda: Kept(0, 0))
    answered: int = 0
    failed: int = 0
    dropped_triggers: int = 0
    dropped_events: int = 0
    abandoned: int = 0
    cost: Cost = NOTHING
    calls: int = 0

    @property
    def fired(self) -> int:
        """All its triggers."""
        return self.fires.count

    @property
    def open(self) -> int:
        """Fires among those kept that wait for their answer."""
        return sum(fire.outcome == "open" for fire in self.fires)


@dataclass(slots=True)
class _Load:
    """One load of a sentinel, until it is unloaded."""

    outputs: Cost = NOTHING
    dropped: int = 0
    fire: Fire | None = None
    retry: bool = False
    """It fires again what had failed (``hankwatch sentinel retry``)."""


class FireFold:
    """Follows the ``sentinel.*`` events of a run."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._loads: dict[tuple[str, str], _Load] = {}
        self._anchors = 0
        self.sentinels: dict[str, SentinelFacts] = {}
        self.unlisted = 0
        """Events of sentinels beyond the limit."""
        self.troubles: Kept[Trouble] = Kept(limits.problems // 2, limits.problems // 2)

    def take(self, event: Event) -> Fire | None:
        """The next event; the fire that began or ended with it."""
        sentinel_id = str(event.data.get("sentinelId"))
        if sentinel_id not in self.sentinels:
            if len(self.sentinels) >= self._limits.sentinels:
                self.unlisted += 1
                return None
            fires: Kept[Fire] = Kept(self._limits.first_fires, self._limits.last_fires)
            self.sentinels[sentinel_id] = SentinelFacts(sentinel_id, fires=fires)
        sentinel, key = self.sentinels[sentinel_id], (sentinel_id, str(event.data.get("codonId")))
        match event.type:
            case "sentinel.loaded":
                self._loaded(sentinel, event.data)
                self._load(key).retry = event.data.get("source") == "retry"
            case "sentinel.triggered":
                return self._triggered(sentinel, self._load(key), event)
            case "sentinel.output":
                return self._output(sentinel, self._load(key), event)
            case "sentinel.error":
                return self._error(sentinel, self._load(key), event)
            case "sentinel.unloaded":
                self._unloaded(sentinel, self._loads.pop(key, _Load()), event.data)
            case _:
                pass
        return None

    def facts(self) -> list[SentinelFacts]:
        """All of them as they stand now, with what those that are still loaded have spent and lost so far."""
        found = {
            sentinel_id: replace(sentinel, fires=sentinel.fires.copy(), codons=sentinel.codons.copy())
            for sentinel_id, sentinel in self.sentinels.items()
        }
        _settle(found, self._loads)
        return list(found.values())

    def _load(self, key: tuple[str, str]) -> _Load:
        if key not in self._loads and len(self._loads) >= _MAX_LOADS:
            # No run has that many at once; a journal that says so must not fill the memory.
            _settle(self.sentinels, self._loads)
            self._loads.clear()
        return self._loads.setdefault(key, _Load())

    def _loaded(self, sentinel: SentinelFacts, data: EventData) -> None:
        sentinel.model, sentinel.trigger_type = str(data.get("model")), str(data.get("triggerType"))
        sentinel.strategy = str(data.get("executionStrategy"))
        sentinel.source = str(data.get("sourcePath") or data.get("source") or "")
        report = data.get("report")
        if isinstance(report, Mapping):
            sentinel.report = str(report.get("logFile") or "")
        sentinel.loads += 1
        sentinel.loaded = True
        if len(sentinel.codons) < self._limits.names:
            sentinel.codons[str(data.get("codonId"))] = None

    def _triggered(self, sentinel: SentinelFacts, load: _Load, event: Event) -> Fire:
        data = event.data
        ids = data.get("eventIds")
        self._anchors += 1
        fire = Fire(
            self._anchors,
            sentinel.id,
            str(data.get("codonId")),
            count_of(data.get("triggerNumber")),
            event.at_ms,
            str(data.get("cause") or ""),
            count_of(data.get("eventCount")),
            tuple(map(str, ids[: self._limits.events_per_fire])) if isinstance(ids, list) else (),
            event.cursor,
        )
        load.fire = fire
        sentinel.fires.add(fire)
        return fire

    def _current(self, sentinel: SentinelFacts, load: _Load, event: Event) -> Fire:
        """The fire that an answer or a failure belongs to; one of its own where the journal names none."""
        number = count_of(event.data.get("triggerNumber"))
        if load.fire is None or load.fire.number != number or load.fire.outcome != "open":
            self._triggered(sentinel, load, event)
        assert load.fire is not None
        load.fire.ended_ms, load.fire.ended_cursor = event.at_ms, event.cursor
        return load.fire

    def _output(self, sentinel: SentinelFacts, load: _Load, event: Event) -> Fire:
        data, fire = event.data, self._current(sentinel, load, event)
        content = data.get("content")
        fire.outcome, fire.structured = "answered", not isinstance(content, str)
        text = content if isinstance(content, str) else json_text(content)
        fire.content = Excerpt.of(text.strip("\n"), self._limits.content_chars)
        fire.cost = cost_of(data.get("cost"))
        fire.truncated, fire.omitted = data.get("truncated") is True, count_of(data.get("omitted"))
        fire.call_id = str(data["callId"]) if data.get("callId") else None
        load.outputs += fire.cost
        sentinel.answered += 1
        if load.retry:
            _mark_retried(sentinel, fire)
        return fire

    def _error(self, sentinel: SentinelFacts, load: _Load, event: Event) -> Fire | None:
        data = event.data
        kind, message = str(data.get("errorType")), str(data.get("message"))
        lost = count_of(data.get("count"))
        self.troubles.add(Trouble(event.at_ms, sentinel.id, kind, message[: self._limits.payload_chars], lost))
        if kind == "queue-overflow":
            load.dropped += lost
        elif kind == "abandoned":
            sentinel.abandoned += lost
            if load.fire is not None and load.fire.outcome == "open":
                load.fire.outcome, load.fire.abandoned = "failed", True
                load.fire.error, load.fire.ended_ms = f"abandoned: {message}", event.at_ms
                load.fire.ended_cursor = event.cursor
        elif data.get("triggerNumber") is not None and kind != "file-write-failed":
            fire = self._current(sentinel, load, event)
            fire.outcome, fire.error = "failed", f"{kind}: {message}"[: self._limits.payload_chars]
            sentinel.failed += 1
            return fire
        return None

    def _unloaded(self, sentinel: SentinelFacts, load: _Load, data: EventData) -> None:
        sentinel.loaded, sentinel.ended = False, str(data.get("reason"))
        calls, final = count_of(data.get("llmCallCount")), data.get("finalCost")
        sentinel.calls += calls
        told = cost_of(final, unpriced=calls)
        if told.unpriced and load.outputs.known_usd:
            told = load.outputs
        sentinel.cost += Cost(told.known_usd, max(told.unpriced, load.outputs.unpriced))
        sentinel.dropped_triggers += count_of(data.get("droppedTriggers")) or load.dropped
        sentinel.dropped_events += count_of(data.get("droppedEvents"))


def _settle(sentinels: Mapping[str, SentinelFacts], loads: Mapping[tuple[str, str], _Load]) -> None:
    """Add what loads without an end have spent and lost."""
    for (sentinel_id, _), load in loads.items():
        sentinels[sentinel_id].cost += load.outputs
        sentinels[sentinel_id].dropped_triggers += load.dropped


def _mark_retried(sentinel: SentinelFacts, answered: Fire) -> None:
    for fire in sentinel.fires:
        same = (fire.codon_id, fire.event_ids, fire.event_count)
        if fire.outcome == "failed" and same == (answered.codon_id, answered.event_ids, answered.event_count):
            fire.outcome, fire.again = "retried", answered
            sentinel.failed -= not fire.abandoned
            sentinel.abandoned -= fire.abandoned
            return


def cost_of(value: Any, *, unpriced: int = 1) -> Cost:
    """A journal's number as money; what is none costs something unknown, ``unpriced`` times."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_USD
    return Cost(float(value)) if is_number else Cost(0.0, unpriced)


def count_of(value: Any) -> int:
    """A journal's count; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def json_text(value: Any) -> str:
    """A JSON value as people read it."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
