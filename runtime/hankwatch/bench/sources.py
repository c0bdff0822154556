"""Recorded events from wherever they are: an execution, a journal, an agent program's own stream (spec hank 5)."""

import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from hankwatch.agents.detect import DIALECTS, ENVELOPE, detect
from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import decide
from hankwatch.agents.program import Dialect
from hankwatch.agents.translate import Translator
from hankwatch.core.clock import StreamTime
from hankwatch.core.errors import UsageError
from hankwatch.events.envelope import format_stamp
from hankwatch.events.run import CodonCompleted, CodonStarted
from hankwatch.events.shapes import ExitError, ExitSuccess
from hankwatch.processes.lines import LineSplitter
from hankwatch.runner.execution import find_execution
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.stream import EventStream

LINE_GAP_MS = 5
"""Distance of a line without a stamp from the line before it (spec hank 5)."""
NO_STAMP_MS = 946_684_800_000
"""Start of a stream without any stamp: 2000-01-01T00:00:00Z."""
_DETECT_LINES = 200
_CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class Source:
    """A recording; ``play`` sends it once through a stream."""

    path: Path
    program: str
    """``journal`` for our own envelope, else the agent program that wrote it."""
    codon: str | None = None
    """A journal: only this codon's events. An agent's stream: the codon id its events get."""
    bad_lines: int = 0
    """Lines that became no event."""
    replayed: int = 0
    """Events left out because their id was seen before."""
    counts: Counter[str] = field(default_factory=Counter)
    """What else did not become an event of its own (``Translator.counts``)."""

    def play(self, stream: EventStream, time: StreamTime) -> None:
        """Emit every event in order, stream time moving with them."""
        if self.program == ENVELOPE:
            self._play_journal(stream)
        else:
            self._play_stream(stream, time)

    def _play_journal(self, stream: EventStream) -> None:
        reader = JournalReader(self.path)
        seen: set[str] = set()
        for event in reader.read():
            if event.id and event.id in seen:
                self.replayed += 1
                continue
            seen.add(event.id)
            if self.codon is None or self.codon in {event.data.get("codonId"), event.data.get("baseCodonId")}:
                stream.emit_recorded(event)
        self.bad_lines = reader.bad_lines

    def _play_stream(self, stream: EventStream, time: StreamTime) -> None:
        codon = self.codon or "imported"
        dialect, translator, evidence = DIALECTS[self.program](), Translator(codon), Evidence()
        at_ms = start_ms = _first_stamp(self.path, DIALECTS[self.program]())
        time.advance_to(start_ms)
        started = False
        for line in _lines(self.path):
            signals = dialect.feed(line)
            at_ms = max(at_ms, dialect.stamp_ms) if dialect.stamp_ms is not None else at_ms + LINE_GAP_MS
            time.advance_to(at_ms)
            for signal in signals:
                evidence.note(signal)
                payloads = translator.translate(signal, at_ms)
                if not started and not translator.counts["junk"]:
                    started = True
                    stream.emit(_started(codon, translator.session_id, start_ms))
                stream.emit(*payloads)
        for signal in dialect.finish():
            evidence.note(signal)
            stream.emit(*translator.translate(signal, at_ms))
        stream.emit(*translator.finish())
        ending = evidence.ending(exit_code=0, states_result=dialect.states_result)
        outcome = decide(ending)
        success = outcome.status == "success"
        stream.emit(
            CodonCompleted(
                codon_id=codon,
                success=success,
                cost=translator.account.cost_usd,
                duration=at_ms - start_ms,
                exit_status=ExitSuccess() if success else ExitError(code=-1),
                failure_reason=outcome.reason,
            )
        )
        self.counts = translator.counts
        self.bad_lines = translator.counts["junk"]


def _started(codon: str, session_id: str, start_ms: int) -> CodonStarted:
    return CodonStarted(codon_id=codon, codon_name=codon, session_id=session_id, start_time=format_stamp(start_ms))


def open_source(target: str, base: Path, *, agent: str | None = None, codon: str | None = None) -> Source:
    """What ``target`` names: a file (journal or agent stream, gzipped or not), or a run under ``base``.

    Raises:
        RunNotFound: neither a file nor a run.
        UsageError: a file that is no recording, or ``agent`` names no program.
    """
    path = Path(target)
    if not path.is_file():
        path = find_execution(target, base).layout.journal
        if not path.is_file():
            raise UsageError(f"{target} has no journal yet")
    if agent is not None and agent not in DIALECTS:
        raise UsageError(f"no agent program is named {agent!r}", hint=f"one of {', '.join(DIALECTS)}")
    program = agent or detect(islice(_lines(path), _DETECT_LINES))
    if program is None:
        raise UsageError(
            f"{path} is no recording that can be recognised",
            hint=f"a journal, or a stream of {', '.join(name for name in DIALECTS if name != ENVELOPE)}; --agent NAME forces one",
        )
    return Source(path, program, codon)


def _lines(path: Path) -> Iterator[bytes]:
    splitter = LineSplitter()
    with cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield from (line.data for line in splitter.feed(chunk))
    yield from (line.data for line in splitter.finish())


def _first_stamp(path: Path, dialect: Dialect) -> int:
    for line in _lines(path):
        dialect.feed(line)
        if dialect.stamp_ms is not None:
            return dialect.stamp_ms
    return NO_STAMP_MS
