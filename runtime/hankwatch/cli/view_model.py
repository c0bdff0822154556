"""What the live view shows, folded from a run's events: events in, rows out; no terminal, no clock."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hankwatch.cli.event_lines import gist, is_for_people
from hankwatch.events.envelope import Event
from hankwatch.events.stamps import parse_stamp
from hankwatch.hank.model import Hank
from hankwatch.runner.state import CodonRecord, RunState, fold, total_cost

KEPT_EVENTS = 200
"""More than any terminal is high."""
STATUS_MS = 15_000
"""How long a word to whoever sits there stays."""
_GIST_CHARS = 300
_OF_A_TRIGGER = {"llm-call-failed", "template-render-failed", "structured-output-invalid"}
"""Errors with which one trigger has ended."""


@dataclass(frozen=True, slots=True)
class CodonRow:
    """One attempt of a codon, or a codon whose turn has not come."""

    name: str
    """Runtime id, with the attempt behind it from the second on."""
    state: str
    """The contract's status, or ``waiting``."""
    seconds: float | None
    """From its start to its end or to now; None before."""
    cost_usd: float | None
    """Of its agent; None when a part is unknown."""
    tokens: int
    """All of its agent's, cached ones included."""
    note: str
    """What it does now, or why it failed."""

    @property
    def live(self) -> bool:
        """It is under way."""
        return self.state not in {"waiting", "completed", "failed", "skipped"}


@dataclass(frozen=True, slots=True)
class SentinelRow:
    """One sentinel of one codon."""

    name: str
    codon_id: str
    state: str
    """``watching``, ``asking``, or why it was unloaded."""
    queue: int
    """Triggers that waited when one was last begun."""
    fired: int
    failed: int
    cost_usd: float | None
    note: str
    """What it said last."""
    loaded: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything to draw, at one moment."""

    hank: str
    outcome: str
    """``starting``, ``running``, ``waiting`` (for ``next``), ``completed`` or ``failed``."""
    seconds: float
    cost_usd: float | None
    """Of all agents of this run."""
    sentinel_cost_usd: float | None
    codons: tuple[CodonRow, ...]
    """In order; those to come at the end."""
    sentinels: tuple[SentinelRow, ...]
    """Loaded ones first, then the others, latest first."""
    events: tuple[Event, ...]
    """The latest, oldest first."""
    status: str
    """The last word to whoever sits there."""


@dataclass(slots=True)
class _Sentinel:
    name: str
    codon_id: str
    asking: bool = False
    queue: int = 0
    fired: int = 0
    failed: int = 0
    cost_usd: float | None = 0.0
    note: str = ""
    unloaded: str | None = None

    def row(self) -> SentinelRow:
        state = self.unloaded or ("asking" if self.asking else "watching")
        loaded = self.unloaded is None
        return SentinelRow(
            self.name, self.codon_id, state, self.queue, self.fired, self.failed, self.cost_usd, self.note, loaded
        )


@dataclass(slots=True)
class View:
    """The fold; used on the loop's thread."""

    hank: str
    """What the run is called."""
    planned: Sequence[str] = ()
    """Ids of all codons as authored, in order."""
    state: RunState = field(default_factory=RunState)
    """Of the execution before this run."""
    version: int = 0
    """Grows whenever there is something else to see."""
    _status: str = ""
    _status_until_ms: int | None = None
    """Set by the first frame that shows it."""
    _idle: str = ""
    """What the run waits for, while it does."""
    _run_id: str | None = None
    _began_ms: int | None = None
    _notes: dict[str, str] = field(default_factory=dict)
    _nudges: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Of each attempt of a codon."""
    _sentinels: dict[tuple[str, str], _Sentinel] = field(default_factory=dict)
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))

    def take(self, event: Event) -> None:
        """The next event of the run."""
        self.version += 1
        if self._began_ms is None:
            self._began_ms = event.at_ms
        if event.type == "state.transition":
            self.state, self._idle = fold((event,), self.state), ""
            if event.data.get("transitionType") == "RunStarted":
                self._run_id = event.data.get("runId")
        elif event.type.startswith("sentinel."):
            self._of_sentinel(event)
        elif event.type == "watchdog.nudge" and not event.data.get("observed"):
            self._count_nudge()
        elif event.type == "server.idle":
            self._idle = str(event.data.get("message"))
        elif event.type in {"assistant.action", "tool.result", "rig.output"}:
            self._notes[str(event.data.get("codonId"))] = gist(event)[:_GIST_CHARS]
        if is_for_people(event):
            self._events.append(event)

    def say(self, status: str) -> None:
        """A word to whoever sits there: for a while, or until the next one."""
        self._status, self._status_until_ms = status, None
        self.version += 1

    def frame(self, now_ms: int) -> Frame:
        """What there is to see at a stream instant."""
        run = self.state.current if self._run_id is not None else None
        began_ms = self._began_ms if self._began_ms is not None else now_ms
        return Frame(
            hank=self.hank,
            outcome="starting" if run is None else "waiting" if self._idle else run.status,
            seconds=max(0, now_ms - began_ms) / 1000,
            cost_usd=run.cost_usd if run is not None else 0.0,
            sentinel_cost_usd=total_cost(sentinel.cost_usd for sentinel in self._sentinels.values()),
            codons=tuple(self._codons(now_ms)),
            sentinels=tuple(self._rows_of_sentinels()),
            events=tuple(self._events),
            status=self._shown_status(now_ms),
        )

    def _shown_status(self, now_ms: int) -> str:
        if self._status_until_ms is None:
            self._status_until_ms = now_ms + STATUS_MS
        return self._status if self._status and now_ms < self._status_until_ms else self._idle

    def _codons(self, now_ms: int) -> Iterator[CodonRow]:
        records = self.state.thread if self._run_id is not None else ()
        for record in records:
            yield self._codon(record, now_ms)
        begun = {record.base_codon_id or record.codon_id for record in records}
        for codon_id in self.planned:
            if codon_id not in begun:
                yield CodonRow(codon_id, "waiting", None, 0.0, 0, "")

    def _codon(self, record: CodonRecord, now_ms: int) -> CodonRow:
        began_ms, ended_ms = parse_stamp(record.started_at), parse_stamp(record.ended_at)
        until_ms = now_ms if ended_ms is None else ended_ms
        tokens = record.tokens
        if record.final:
            reason: Mapping[str, Any] = record.failure_reason or {}
            note = str(reason.get("message") or reason.get("type") or "")
        else:
            note = self._notes.get(record.codon_id, "")
        if nudges := self._nudges[record.codon_id, record.attempt]:
            note = f"nudged {nudges} ×" + (f"; {note}" if note else "")
        return CodonRow(
            name=record.codon_id if record.attempt == 1 else f"{record.codon_id} ({record.attempt})",
            state=record.status,
            seconds=None if began_ms is None else max(0, until_ms - began_ms) / 1000,
            cost_usd=record.cost_usd,
            tokens=tokens.input + tokens.output + tokens.cache_creation + tokens.cache_read,
            note=note,
        )

    def _count_nudge(self) -> None:
        record = self.state.current.current if self.state.current is not None else None
        if record is not None:
            self._nudges[record.codon_id, record.attempt] += 1

    def _rows_of_sentinels(self) -> Iterator[SentinelRow]:
        rows = [sentinel.row() for sentinel in self._sentinels.values()]
        yield from (row for row in rows if row.loaded)
        yield from (row for row in reversed(rows) if not row.loaded)

    def _of_sentinel(self, event: Event) -> None:
        data = event.data
        key = str(data.get("codonId")), str(data.get("sentinelId"))
        if event.type == "sentinel.loaded":
            self._sentinels[key] = _Sentinel(key[1], key[0])
            return
        sentinel = self._sentinels.setdefault(key, _Sentinel(key[1], key[0]))
        match event.type:
            case "sentinel.triggered":
                sentinel.fired += 1
                sentinel.asking, sentinel.queue = True, int(data.get("queueSize") or 0)
            case "sentinel.output":
                sentinel.asking = False
                sentinel.cost_usd = total_cost((sentinel.cost_usd, data.get("cost")))
                sentinel.note = str(data.get("content"))[:_GIST_CHARS]
            case "sentinel.error":
                if data.get("errorType") in _OF_A_TRIGGER:
                    sentinel.failed += 1
                    sentinel.asking = False
                sentinel.note = str(data.get("message"))[:_GIST_CHARS]
                if data.get("errorType") == "load-failed":
                    sentinel.unloaded = "not loaded"
            case "sentinel.unloaded":
                sentinel.asking, sentinel.queue = False, 0
                sentinel.unloaded = str(data.get("reason"))
                sentinel.cost_usd = data.get("finalCost")
            case _:
                pass


def planned(hank: Hank) -> list[str]:
    """Ids of all codons as authored, in order."""
    return [codon.id for _, codon in hank.codons()]
