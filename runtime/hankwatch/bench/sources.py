"""Recorded events from wherever they are: an execution, a journal, an agent program's own stream (spec hank 5)."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hankwatch.agents.detect import DIALECTS, ENVELOPE, detect
from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import decide
from hankwatch.agents.program import Dialect
from hankwatch.agents.signals import Junk, Signal
from hankwatch.agents.translate import Translator
from hankwatch.bench.journal_view import NO_EDGE, Edge, Part, Repeats, started_run, transition
from hankwatch.bench.lines import LINE_GAP_MS, NO_STAMP_MS, Place, events_with, journal_events, lines
from hankwatch.core.clock import StreamTime
from hankwatch.core.errors import NotOfRun, UsageError
from hankwatch.events.envelope import Event, format_stamp
from hankwatch.events.payload import Payload
from hankwatch.events.run import CodonCompleted, CodonStarted
from hankwatch.events.shapes import ExitError, ExitSuccess
from hankwatch.runner.execution import find_journal, find_run
from hankwatch.stream.stream import EventStream

_DETECT_LINES = 200
DEFAULT_CODON = "imported"
"""The codon of an agent's stream that was given no other."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a recording says at one instant."""

    at_ms: int
    """Its stamp; one that lies before its predecessor's means the predecessor's."""
    event: Event | None = None
    """A journal's event."""
    payloads: tuple[Payload, ...] = ()
    """What a line of an agent's stream says."""
    edge: Edge = NO_EDGE
    """A journal: what it means for the sentinels that watch."""
    covered: bool = True
    """False: it lies outside the part of the journal that is looked at, and only its ``edge`` counts."""

    def emit(self, stream: EventStream) -> None:
        """Let it happen."""
        if self.event is not None:
            stream.emit_recorded(self.event)
        else:
            stream.emit(*self.payloads)


@dataclass(slots=True)
class Source:
    """A recording; ``play`` sends it once through a stream, ``entries`` are what it sends."""

    path: Path
    program: str
    """``journal`` for our own envelope, else the agent program that wrote it."""
    codon: str | None = None
    """A journal: only this codon's events. An agent's stream: the codon id its events get."""
    run: str | None = None
    """A journal: only this run's events."""
    tool_result_chars: int = 2_500
    """An agent's stream: where the results of its tools are cut."""
    redact: Callable[[str], str] = str
    """An agent's stream: applied to a result before it is cut."""
    bad_lines: int = 0
    """Lines that became no event."""
    replayed: int = 0
    """Events left out because they came before."""
    left_out: int = 0
    """Events in which recorded sentinels, or an earlier replay, told of themselves; steps leave them out."""
    counts: Counter[str] = field(default_factory=Counter)
    """What else did not become an event of its own (``Translator.counts``)."""
    place: Place = field(default_factory=Place)
    """How much of the file is read."""
    goes_on: Callable[[], bool] = lambda: True
    """A journal: asked before each event whether to read it."""
    broken_off: bool = False
    """Whether it was read no further because ``goes_on`` had said so."""

    def play(self, stream: EventStream, time: StreamTime) -> Iterator[None]:
        """Emit every event in order, stream time moving with them; yields after each entry.

        Raises:
            UsageError: as ``entries``.
        """
        for entry in self.entries():
            if entry.covered:
                time.advance_to(entry.at_ms)
                entry.emit(stream)
                yield

    def entries(self) -> Iterator[Entry]:
        """All it says, in order.

        Raises:
            UsageError: the file cannot be read to its end.
            NotOfRun: the journal has no such codon.
        """
        return self._of_journal() if self.program == ENVELOPE else _Told(self).entries()

    def _of_journal(self) -> Iterator[Entry]:
        part = Part(self.run, self.codon)
        with closing(Repeats(self._first_events)) as repeats:
            for event in journal_events(self.path, self.place):
                if not self.goes_on():
                    self.broken_off = True
                    return
                if event is None:
                    self.bad_lines += 1
                elif repeats.again(event):
                    self.replayed += 1
                elif (covered := part.covers(event)) or part.edge.changes:
                    yield Entry(event.at_ms, event, (), part.edge, covered)
        if self.codon is not None and not _is_among(self.codon, part.codons):
            raise NotOfRun("codon", self.codon, list(part.codons), where=str(self.path))

    def _first_events(self, count: int) -> Iterator[Event]:
        return islice((event for event in journal_events(self.path) if event is not None), count)


def _is_among(codon: str, codons: dict[str, None]) -> bool:
    return any(codon in {known, known.partition("#")[0]} for known in codons)


class _Told:
    """One agent stream on its way to be a codon's events."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._codon = source.codon or DEFAULT_CODON
        self._dialect = DIALECTS[source.program]()
        self._translator = Translator(self._codon, tool_result_chars=source.tool_result_chars, redact=source.redact)
        self._evidence = Evidence()

    def entries(self) -> Iterator[Entry]:
        start_ms = _first_stamp(self._source.path, DIALECTS[self._source.program]())
        at_ms = start_ms - LINE_GAP_MS
        started = False
        for line in lines(self._source.path, self._source.place):
            if line.stub is not None:
                self._source.bad_lines += 1
            elif line.data.strip():
                signals = self._dialect.feed(line.data)
                stamp_ms = self._dialect.stamp_ms
                at_ms = at_ms + LINE_GAP_MS if stamp_ms is None else max(at_ms, stamp_ms)
                for signal in signals:
                    payloads = self._said(signal, at_ms)
                    if not started and not isinstance(signal, Junk):
                        started = True
                        payloads = [self._started(start_ms), *payloads]
                    yield from self._entry(at_ms, payloads)
        at_ms = max(at_ms, start_ms)
        for signal in self._dialect.finish():
            yield from self._entry(at_ms, self._said(signal, at_ms))
        yield from self._entry(at_ms, [*self._translator.finish(), self._completed(at_ms - start_ms)])
        self._source.counts = self._translator.counts
        self._source.bad_lines += self._translator.counts["junk"]

    def _entry(self, at_ms: int, payloads: list[Payload]) -> Iterator[Entry]:
        if payloads:
            yield Entry(at_ms, payloads=tuple(payloads))

    def _said(self, signal: Signal, at_ms: int) -> list[Payload]:
        self._evidence.note(signal)
        return self._translator.translate(signal, at_ms)

    def _started(self, start_ms: int) -> Payload:
        return CodonStarted(
            codon_id=self._codon,
            codon_name=self._codon,
            session_id=self._translator.session_id,
            start_time=format_stamp(start_ms),
        )

    def _completed(self, duration_ms: int) -> Payload:
        # How the process ended is not in its stream; the result line has the word.
        outcome = decide(self._evidence.ending(exit_code=0, states_result=self._dialect.states_result))
        success = outcome.status == "success"
        return CodonCompleted(
            codon_id=self._codon,
            success=success,
            cost=self._translator.account.cost_usd,
            duration=duration_ms,
            exit_status=ExitSuccess() if success else ExitError(code=-1),
            failure_reason=outcome.reason,
        )


def open_source(
    target: str,
    base: Path,
    *,
    agent: str | None = None,
    codon: str | None = None,
    tool_result_chars: int = 2_500,
    redact: Callable[[str], str] = str,
) -> Source:
    """What ``target`` names: a file (journal or agent stream, gzipped or not), or a run under ``base``.

    Raises:
        RunNotFound: neither a file nor a run.
        UsageError: a file that is no recording, or ``agent`` names no program.
    """
    if agent is not None and agent not in DIALECTS:
        raise UsageError(f"no agent program is named {agent!r}", hint=f"one of {', '.join(DIALECTS)}")
    path = find_journal(target, base)
    run = None if path == Path(target) else find_run(target, base).run or latest_run(path)
    program = agent or detect(line.data for line in islice(lines(path), _DETECT_LINES))
    if program is None:
        programs = ", ".join(name for name in DIALECTS if name != ENVELOPE)
        raise UsageError(
            f"{path} is no recording that can be recognised",
            hint=f"a journal, or a stream of {programs}; --agent NAME forces one",
        )
    return Source(path, program, codon, run, tool_result_chars, redact)


def latest_run(journal: Path) -> str | None:
    """The run that an execution's journal ends with; None when it holds none.

    Raises:
        UsageError: the journal cannot be read to its end.
    """
    started = [event for event in events_with(journal, b"RunStarted") if transition(event) == "RunStarted"]
    return started_run(started[-1]) if started else None


def _first_stamp(path: Path, dialect: Dialect) -> int:
    for line in lines(path):
        dialect.feed(line.data)
        if dialect.stamp_ms is not None:
            return dialect.stamp_ms
    return NO_STAMP_MS
