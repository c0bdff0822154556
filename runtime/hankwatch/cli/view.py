"""The live view drawn: a frame, fitted to any terminal from 20 columns on."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hankwatch.cli.event_lines import event_line, gist
from hankwatch.cli.view_model import CodonRow, Frame, SentinelRow
from hankwatch.core.text import one_line
from hankwatch.events.envelope import Event
from hankwatch.pages.words import money

_WIDE = 100
"""Columns from which notes and models fit beside the numbers."""
_MEDIUM = 60
_NUMBER_WIDTH = 7
"""Of a column of numbers, on average."""
_KEYS = ("n", "next"), ("s", "skip"), ("f", "force stop"), ("l", "list checkpoints"), ("r", "rollback"), ("q", "quit")
_SHORT_KEYS = ("n", "next"), ("s", "skip"), ("f", "fail"), ("l", "ls"), ("r", "roll"), ("q", "quit")
_STATES = {
    "completed": "green",
    "failed": "bold red",
    "skipped": "yellow",
    "waiting": "dim",
    "consecutive-failures": "bold red",
    "fatal-error": "bold red",
    "not loaded": "bold red",
    "asking": "bold cyan",
}


def draw(frame: Frame, width: int, height: int, *, has_keys: bool) -> RenderableType:
    """The whole screen.

    Args:
        frame: What to show.
        width: Columns of the terminal.
        height: Lines of it.
        has_keys: Keys are read, so they are worth naming.
    """
    foot = [Text(one_line(frame.status), style="bold")] if frame.status else []
    if has_keys:
        foot.append(_keys(width))
    room = height - 1 - len(foot)
    codons = _codons(frame.codons, width, max(2, room // 3))
    room -= codons.row_count + 1
    parts: list[RenderableType] = [_head(frame, width), codons]
    if frame.sentinels and room > 4:
        sentinels = _sentinels(frame.sentinels, width, max(2, room // 2))
        room -= sentinels.row_count + 1
        parts.append(sentinels)
    events = [_event(event, width) for event in frame.events[max(0, len(frame.events) - room) :]]
    if room <= 0:
        events = []
    parts += [_cut(line) for line in events]
    parts += [Text() for _ in range(room - len(events))]
    return Group(*parts, *(_cut(line) for line in foot))


def _event(event: Event, width: int) -> Text:
    if width >= _MEDIUM:
        return event_line(event, width=width)
    return Text.assemble((event.timestamp[14:19], "dim"), " ", (event.type, "cyan"), " ", gist(event)[:width])


def _head(frame: Frame, width: int) -> Text:
    style = {"completed": "bold green", "failed": "bold red"}.get(frame.outcome, "bold cyan")
    cost = money(frame.cost_usd)
    if width >= _MEDIUM:
        cost = f"agents {cost}, sentinels {money(frame.sentinel_cost_usd)}"
    return _cut(
        Text.assemble((frame.outcome, style), f"  {duration(frame.seconds)}  {cost}  ", (one_line(frame.hank), "dim"))
    )


def _codons(rows: Sequence[CodonRow], width: int, room: int) -> Table:
    shown = _around_the_live_one(rows, room - 1)
    made = _table(width, "codon", "state", "#time", "#cost", "#tokens" * (width >= _MEDIUM), "now" * (width >= _WIDE))
    for row in shown:
        waiting = row.state == "waiting"
        cells: list[RenderableType] = [
            Text(one_line(row.name), style="bold" if row.live else ""),
            Text(row.state, style=_STATES.get(row.state, "cyan")),
            "" if row.seconds is None else duration(row.seconds),
            "" if waiting else money(row.cost_usd),
            "" if waiting else f"{row.tokens:,}",
            one_line(row.note),
        ]
        made.add_row(*cells[: len(made.columns)])
    return made


def _around_the_live_one(rows: Sequence[CodonRow], room: int) -> Sequence[CodonRow]:
    """As many rows as fit, the live one or the last that began among them."""
    begun = sum(row.state != "waiting" for row in rows)
    first = max(0, min(len(rows) - room, begun - room + 1, begun - 1))
    return rows[first : first + room]


def _sentinels(rows: Sequence[SentinelRow], width: int, room: int) -> Table:
    wide, medium = width >= _WIDE, width >= _MEDIUM
    made = _table(
        width,
        *("sentinel", "state", "#queue", "#fired", "#cost"),
        *("#failed" * medium, "codon" * wide, "said last" * wide),
    )
    for row in rows[: room - 1]:
        cells: list[RenderableType] = [
            Text(one_line(row.name), style="" if row.loaded else "dim"),
            Text(row.state, style=_STATES.get(row.state, "dim")),
            str(row.queue),
            str(row.fired),
            money(row.cost_usd),
            str(row.failed),
            row.codon_id,
            one_line(row.note),
        ]
        made.add_row(*cells[: len(made.columns)])
    return made


def _table(width: int, *columns: str) -> Table:
    """Empty, with one line a row; ``#`` marks numbers, an empty name is no column.

    In a wide one the last takes the rest; else texts share what numbers leave them.
    """
    named, wide = [column for column in columns if column], width >= _WIDE
    numbers = [column for column in named if column.startswith("#")]
    share = (width - len(numbers) * _NUMBER_WIDTH) // (len(named) - len(numbers)) - 1
    made = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=wide, pad_edge=False)
    for column in named:
        made.add_column(
            column.lstrip("#"),
            justify="right" if column in numbers else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=None if wide or column in numbers else max(1, share),
            ratio=1 if wide and column == named[-1] else None,
        )
    return made


def _keys(width: int) -> Text:
    line = Text()
    for key, word in _KEYS if width >= _WIDE else _SHORT_KEYS:
        line.append(f"{' ' if line else ''}{key}", style="bold").append(f" {word}", style="dim")
    return line


def _cut(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def duration(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def outcome_lines(frame: Frame) -> Iterator[Text]:
    """What stays on the terminal when the view is gone: how each codon ended."""
    for row in frame.codons:
        if row.state != "waiting":
            time = "" if row.seconds is None else duration(row.seconds)
            state = (row.state, _STATES.get(row.state, ""))
            note = f"  {one_line(row.note)}" if row.note else ""
            yield Text.assemble(f"{row.name}: ", state, f", {time}, {money(row.cost_usd)}{note}")
