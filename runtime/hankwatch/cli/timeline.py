"""A recording on one screen: codons, events, matches and fires over stream time (spec cli, ``try``)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil

from rich.cells import cell_len
from rich.text import Text

from hankwatch.bench.attempt import Fire
from hankwatch.events.envelope import Event, format_stamp
from hankwatch.pages.bins import Bins
from hankwatch.pages.words import duration
from hankwatch.sentinels.strategies import Cause

MIN_WIDTH = 40
"""On narrower terminals nothing is drawn."""
_BLOCKS, _PLAIN_BLOCKS = "▁▂▃▄▅▆▇█", ".:-=+*#@"
_LABEL_WIDTH = 10
_BINS = 2_048
"""Many beside the columns of a terminal, so that nearly all of these are used."""
_TICK_COLUMNS = 8
"""Ticks are at least so far apart."""
_TICKS_MS = (
    *(base * factor for factor in (1, 10, 100) for base in (1, 2, 5)),
    *(seconds * 1_000 for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * 60_000 for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * 3_600_000 for hours in (1, 2, 3, 6, 12)),
    *(days * 86_400_000 for days in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)
_STYLES = {
    Cause.MATCH: "green",
    Cause.THRESHOLD: "green",
    Cause.QUIET: "cyan",
    Cause.MAX_WAIT: "yellow",
    Cause.WINDOW: "cyan",
    Cause.FULL: "bold red",
    Cause.DRAIN: "magenta",
}


@dataclass(slots=True)
class Span:
    """From a codon's start to its end."""

    name: str
    start_ms: int
    end_ms: int | None = None
    """None while it runs, and to the end of the recording when that does not have its end."""


@dataclass(slots=True)
class Timeline:
    """What happened when; its size does not grow with the recording but for the codons."""

    spans: list[Span] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    """Events, matches, and fires by cause."""
    _bins: Bins | None = None

    def look(self, event: Event, matches: int) -> None:
        """Take the next event that triggers can see."""
        if self._bins is None:
            self._bins = Bins(event.at_ms, size=_BINS)
        self._add("events", event.at_ms, 1)
        self._add("matches", event.at_ms, matches)
        if event.type == "codon.started":
            self.spans.append(Span(str(event.data.get("codonId", "")), event.at_ms))
        elif event.type == "codon.completed" and self.spans:
            self.spans[-1].end_ms = event.at_ms

    def fired(self, fire: Fire) -> None:
        """Take the next fire."""
        self._add(str(fire.batch.cause), fire.batch.at_ms, 1)

    def draw(self, width: int, *, plain: bool) -> Iterator[Text]:
        """The drawing in lines of at most ``width`` columns; nothing without events or on less than ``MIN_WIDTH``.

        ``plain`` draws with ASCII alone.
        """
        bins = self._bins
        if bins is None or width < MIN_WIDTH:
            return
        count_width = max(len(f"{total:,}") for total in self.totals.values()) + 1
        room = width - _LABEL_WIDTH - count_width
        fold = ceil(bins.used / room)
        columns, column_ms = ceil(bins.used / fold), bins.width_ms * fold
        length = duration(bins.end_ms - bins.start_ms)
        begin = format_stamp(bins.start_ms)
        yield Text(f"{begin[:10]} {begin[11:-1]} UTC + {length}"[:width], style="dim")
        if self.spans:
            yield _line("codons", self._codons(columns, column_ms, plain=plain))
        for lane, total in self.totals.items():
            fine = bins.counts(lane)
            counts = [sum(fine[at : at + fold]) for at in range(0, len(fine), fold)]
            density = lane in {"events", "matches"}
            drawn = _density(counts, plain=plain) if density else _digits(counts)
            line = _line(lane, Text(drawn, style="" if density else _STYLES[Cause(lane)]))
            line.append(f"{total:>{_LABEL_WIDTH + columns + count_width - cell_len(line.plain)},}")
            yield line
        yield from _axis(columns, column_ms, plain=plain)

    def _add(self, lane: str, at_ms: int, count: int) -> None:
        self.totals[lane] = self.totals.get(lane, 0) + count
        if self._bins is not None:
            for _ in range(count):
                self._bins.add(lane, at_ms)

    def _codons(self, columns: int, column_ms: int, *, plain: bool) -> Text:
        assert self._bins is not None
        left, line, right = "[-]" if plain else "├─┤"
        cells = [" "] * columns
        for span in self.spans:
            first = (span.start_ms - self._bins.start_ms) // column_ms
            end_ms = self._bins.end_ms if span.end_ms is None else span.end_ms
            last = (end_ms - self._bins.start_ms) // column_ms
            name = "".join(char if char.isprintable() and cell_len(char) == 1 else "?" for char in span.name)
            inside = name[: max(0, last - first - 1)].ljust(last - first - 1, line)
            drawn = left + inside + (right if span.end_ms is not None else line)
            cells[first : last + 1] = drawn[: last - first + 1]
        return Text("".join(cells), style="bold")


def _line(label: str, drawn: Text) -> Text:
    return Text.assemble((label.ljust(_LABEL_WIDTH), "dim"), drawn)


def _density(counts: Sequence[int], *, plain: bool) -> str:
    """The fuller a column is beside the fullest, the higher its block."""
    blocks = _PLAIN_BLOCKS if plain else _BLOCKS
    most = max(counts)
    return "".join(blocks[ceil(count * len(blocks) / most) - 1] if count else " " for count in counts)


def _digits(counts: Sequence[int]) -> str:
    return "".join(" " if not count else str(count) if count < 10 else "+" for count in counts)


def _axis(columns: int, column_ms: int, *, plain: bool) -> Iterator[Text]:
    """Ticks at round times from the beginning, each with its label where there is room."""
    end_ms = columns * column_ms
    step_ms = next((ms for ms in _TICKS_MS if ms >= _TICK_COLUMNS * column_ms), end_ms)
    tick, line = "+-" if plain else "┴─"
    rule, labels = [line] * columns, ""
    for at_ms in range(0, end_ms, step_ms):
        column = at_ms // column_ms
        rule[column] = tick
        label = duration(at_ms).replace(".0 s", " s") if at_ms else "0"
        if column + len(label) <= columns and (not at_ms or column > len(labels)):
            labels = labels.ljust(column) + label
    yield _line("", Text("".join(rule), style="dim"))
    yield _line("", Text(labels, style="dim"))
