"""A recording in virtual time, step by step: what ``replay`` and ``try`` both stand on (design "How it runs" 5)."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from hankwatch.agents.detect import ENVELOPE
from hankwatch.bench.journal_view import base_id
from hankwatch.bench.lines import NO_STAMP_MS, events_with
from hankwatch.bench.sources import DEFAULT_CODON, Entry, Source
from hankwatch.core.clock import StreamTime
from hankwatch.events.envelope import Event, EventData, format_stamp
from hankwatch.sentinels.fire import OWN_CODES
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.stream.stream import EventStream

REPLAY_CODE = "replay-"
"""Begins the code of every ``info`` in which a replay tells of itself."""
_CLOSING = frozenset({"archive.completed", "archive.partial", "loop.iteration.completed"})
"""What a codon's sentinels are drained before and after, once it has completed."""
_ENDS = _CLOSING | {"codon.completed", "state.snapshot"}


class Moment(Enum):
    """A step that is no more than a point in time."""

    BEGUN = auto()
    """Stream time stands at the first instant; nothing was emitted."""
    PASSED = auto()
    """An instant at which timers were due, or the recording said something, is done."""
    DRAIN = auto()
    """The sentinels of the codon finish here, as they did when it was recorded."""
    LEFT = auto()
    """The codon is over; its sentinels finish and go."""
    BROKEN_OFF = auto()
    """The same of a codon that has not completed: its run was killed, or recorded no further."""


@dataclass(frozen=True, slots=True)
class Entered:
    """From here on this codon's sentinels watch."""

    scope: CodonScope


@dataclass(frozen=True, slots=True)
class Coming:
    """Stream time is about to move."""

    at_ms: int


Step = Moment | Entered | Coming


def steps(
    source: Source, stream: EventStream, time: StreamTime, *, one_scope: bool, paced: bool = False
) -> Iterator[Step]:
    """Emit what ``source`` holds, stream time moving with it; yields wherever sentinels have something to do.

    Whoever takes a step lets everything that it set off come to its end before taking the next, so that it all
    happens at the step's instant. Timers run each at their own instant, before an event of the same one. What
    recorded sentinels said of themselves is left out. With ``one_scope`` everything is one codon's, which ends
    with the recording; an agent's stream is so in any case. Only with ``paced`` each move of stream time is told.

    Raises:
        UsageError: as ``Source.entries``.
    """
    return _Stepping(source, stream, time, one_scope=one_scope or source.program != ENVELOPE, paced=paced).steps()


def is_left_out(event: Event) -> bool:
    """Whether an event tells of sentinels' own work, or of an earlier replay: it is not what is replayed."""
    if event.type == "info":
        code = event.data.get("code")
        return isinstance(code, str) and (code in OWN_CODES or code.startswith(REPLAY_CODE))
    return event.type.startswith("sentinel.") or event.data.get("transitionType") == "SentinelStatesUpdated"


@dataclass(slots=True)
class _Drains:
    """Where the sentinels of a codon were drained, told by the events around (spec hank 2)."""

    _completing: bool = False
    ended: bool = False
    """Whether the codon has completed, and begun no further attempt."""

    def before(self, event: Event) -> bool:
        """Whether they are, before this event."""
        if self._completing and event.type != "info":
            self._completing = False
            return True
        return self.ended and event.type in _CLOSING

    def behind(self, event: Event) -> bool:
        """Whether they are, behind this event; to be asked of each, after ``before``."""
        if self._completing:  # the info that announces it
            self._completing = False
            return True
        if event.type == "state.transition":
            self._transition(event)
        elif event.type == "codon.completed":
            self.ended = True
        return self.ended and event.type in _ENDS

    def _transition(self, event: Event) -> None:
        inner = event.data.get("transition")
        data = inner.get("data") if isinstance(inner, dict) else None
        kind = event.data.get("transitionType")
        if kind == "CodonTransitioned" and isinstance(data, dict) and data.get("to") == "completing-sentinels":
            self._completing = True
        elif kind == "CodonStarted":
            self._completing = self.ended = False


class _Stepping:
    def __init__(self, source: Source, stream: EventStream, time: StreamTime, *, one_scope: bool, paced: bool) -> None:
        self._source = source
        self._stream = stream
        self._time = time
        self._one_scope = one_scope
        self._paced = paced
        self._codons = _Codons(source)
        self._drains = _Drains()
        self._entered = False

    def steps(self) -> Iterator[Step]:
        begun = False
        for entry in map(self._played, self._source.entries()):
            if not begun and (entry.covered or (entry.edge.entered and not self._one_scope)):
                begun = True
                yield self._begin(entry.at_ms)
                if self._one_scope:
                    yield self._enter(self._codons.first(entry.at_ms))
            yield from self._entry(entry)
        if not begun:
            yield self._begin(NO_STAMP_MS)
        yield from self._leave()

    def _begin(self, at_ms: int) -> Step:
        self._time.advance_to(at_ms)
        self._stream.emit()  # nothing is stamped earlier, whether somebody says something here or not
        return Moment.BEGUN

    def _played(self, entry: Entry) -> Entry:
        if entry.event is None or not is_left_out(entry.event):
            return entry
        self._source.left_out += entry.covered
        return replace(entry, covered=False)

    def _entry(self, entry: Entry) -> Iterator[Step]:
        event, edge = entry.event, entry.edge
        if self._one_scope or event is None:
            if entry.covered:
                yield from self._emit(entry)
            return
        if edge.left:
            yield from self._leave()
        if edge.entered and not edge.behind:
            yield self._enter(self._codons.entered(edge.entered, event))
        if entry.covered:
            if self._entered and self._drains.before(event):
                yield Moment.DRAIN
            yield from self._emit(entry)
            if self._entered and self._drains.behind(event):
                yield Moment.DRAIN
        if edge.entered and edge.behind:
            yield self._enter(self._codons.entered(edge.entered, event))

    def _emit(self, entry: Entry) -> Iterator[Step]:
        timers, time = self._stream.timers, self._time
        until_ms = max(entry.at_ms, time.now_ms())
        while (due_ms := timers.next_due_ms()) is not None and due_ms <= until_ms:
            if self._paced:
                yield Coming(due_ms)
            time.advance_to(due_ms)
            self._stream.emit()
            yield Moment.PASSED
        if self._paced:
            yield Coming(until_ms)
        time.advance_to(until_ms)
        entry.emit(self._stream)
        yield Moment.PASSED

    def _enter(self, scope: CodonScope) -> Step:
        self._entered, self._drains = True, _Drains()
        return Entered(scope)

    def _leave(self) -> Iterator[Step]:
        if self._entered:
            self._entered = False
            yield Moment.LEFT if self._one_scope or self._drains.ended else Moment.BROKEN_OFF


@dataclass(slots=True)
class _Codons:
    """What the recording tells of its codons, looked up where one is entered."""

    source: Source
    _started: list[Event] | None = field(default=None)

    def first(self, at_ms: int) -> CodonScope:
        """The codon that all of it is taken for: its first."""
        if self.source.program == ENVELOPE and (started := next(self._find(), None)) is not None:
            return told_scope(started.data)
        codon = self.source.codon or DEFAULT_CODON
        return CodonScope(codon, base_id(codon), codon, None, format_stamp(at_ms))

    def entered(self, codon: str, event: Event) -> CodonScope:
        """The codon that is entered with ``event``."""
        told = [one for one in self._read() if one.data.get("codonId") == codon]
        # One that was started several times, by several runs perhaps, is told of behind each beginning.
        started = next((one for one in told if one.at_ms >= event.at_ms), told[-1] if told else None)
        data = {"codonId": codon, "startTime": event.timestamp} | ({} if started is None else started.data)
        if event.data.get("transitionType") == "CodonStarted":
            data |= {"startTime": event.timestamp}
        return told_scope(data)

    def _read(self) -> list[Event]:
        if self._started is None:
            self._started = list(self._find())
        return self._started

    def _find(self) -> Iterator[Event]:
        for event in events_with(self.source.path, b'"codon.started"'):
            if event.type == "codon.started":
                yield event


def told_scope(data: EventData) -> CodonScope:
    """The codon that a ``codon.started`` tells of."""
    codon, description = str(data.get("codonId", "")), data.get("codonDescription")
    return CodonScope(
        codon,
        str(data.get("baseCodonId") or base_id(codon)),
        str(data.get("codonName") or codon),
        description if isinstance(description, str) else None,
        str(data.get("startTime", "")),
    )
