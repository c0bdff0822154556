"""What differs, in lines that people read: bounded, and without anything that a terminal would obey."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import orjson

from hankwatch.bench.check.model import ExpectedFire
from hankwatch.bench.check.seen import SeenFire

SHOWN_LINES = 40
_QUOTED_LINES = 12
_SHOWN_CHARS = 200
_WIDTH_CHARS = 160
"""Longer lines are continued on the next, so that a change inside one shows as that part of it."""
_COMPARED = 2_000
"""Lines of each side, from the first difference on; keeps the comparison quick."""
_COMPARED_FIRES = 400
_CONTEXT = 2
_GUTTER = "| "
"""Begins each line, so that none of them can be taken for a command of the terminal's or the CI's."""


def visible(text: str) -> str:
    """``text`` on one line, whatever cannot be seen or would be obeyed spelled out."""
    return "".join(char if char.isprintable() else _spelled(char) for char in text)


def shown(text: str) -> str:
    """``visible``, and cut when it is long."""
    seen = visible(text[: _SHOWN_CHARS + 1])
    return seen if len(seen) <= _SHOWN_CHARS else seen[: _SHOWN_CHARS - 1] + "…"


def bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """At most ``SHOWN_LINES`` of them, and how many more there are."""
    if len(lines) <= SHOWN_LINES:
        return tuple(lines)
    return (*lines[:SHOWN_LINES], f"{_GUTTER}… {len(lines) - SHOWN_LINES} more lines")


def quoted(text: str) -> tuple[str, ...]:
    """The beginning of a text that lacked something."""
    lines = _lines(text.strip("\n"))
    shown_lines = [f"{_GUTTER}{visible(line)}".rstrip() for line in lines[:_QUOTED_LINES]]
    more = len(lines) - len(shown_lines)
    return (*shown_lines, f"{_GUTTER}… {more} more lines") if more else tuple(shown_lines)


def file_diff(expected: bytes, actual: bytes) -> tuple[str, ...]:
    """``text_diff`` of two files; of lines that are JSON each value stands on a line of its own."""
    before, after = expected.decode("utf-8", "replace"), actual.decode("utf-8", "replace")
    spread = _spread(before), _spread(after)
    return text_diff(before, after) if spread[0] == spread[1] else text_diff(*spread)


def text_diff(expected: str, actual: str) -> tuple[str, ...]:
    """A unified diff; ``-`` is what was expected, ``+`` what there is."""
    before, after = _lines(expected), _lines(actual)
    same = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    start = max(0, (min(len(before), len(after)) if same is None else same) - _CONTEXT)
    before, after = before[start : start + _COMPARED], after[start : start + _COMPARED]
    marked = _marked_lines(before, after)
    return bounded([f"{_GUTTER}{mark} {visible(line)}".rstrip() if mark else f"{_GUTTER}…" for mark, line in marked])


def _spread(text: str) -> str:
    return "\n".join(told for line in text.split("\n") for told in _told_line(line))


def _told_line(line: str) -> Iterator[str]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        yield "---"
        yield from _told_value(value, "")
    else:
        yield line


def _told_value(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _told_value(item, f"{name}.{key}" if name else key)
    elif isinstance(value, str) and "\n" in value:
        yield f"{name}:"
        yield from (f"  {line}" for line in value.split("\n"))
    else:
        yield f"{name}: {value if isinstance(value, str) else orjson.dumps(value).decode()}"


def _lines(text: str) -> list[str]:
    return [
        line[start : start + _WIDTH_CHARS]
        for line in text.split("\n")
        for start in range(0, max(1, len(line)), _WIDTH_CHARS)
    ]


def _marked_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    hunks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT)
    for number, hunk in enumerate(hunks):
        if number:
            yield "", ""
        for tag, i1, i2, j1, j2 in hunk:
            if tag == "equal":
                yield from ((" ", line) for line in before[i1:i2])
            else:
                yield from (("-", line) for line in before[i1:i2])
                yield from (("+", line) for line in after[j1:j2])


def fires_diff(expected: Sequence[ExpectedFire], seen: Sequence[SeenFire]) -> tuple[str, ...]:
    """The fires in order; ``-`` was expected and did not come, ``+`` came and was not expected."""
    same = next((n for n, (one, other) in enumerate(zip(expected, seen, strict=False)) if not holds(one, other)), None)
    start = min(len(expected), len(seen)) if same is None else same
    marked: list[_Row] = [(" ", number, fire) for number, fire in enumerate(seen[:start], 1)]
    marked += _aligned(expected[start:][:_COMPARED_FIRES], seen[start:][:_COMPARED_FIRES], start)
    near = {
        place + step for place, (m, _, _) in enumerate(marked) if m != " " for step in range(-_CONTEXT, _CONTEXT + 1)
    }
    lines: list[str] = []
    for is_near, rows in groupby(enumerate(marked), lambda row: row[0] in near):
        shown_rows = [_row(mark, number, fire) for _, (mark, number, fire) in rows]
        lines += shown_rows if is_near else [f"{_GUTTER}… {len(shown_rows)} as expected"]
    return bounded(lines)


def fires_listed(seen: Sequence[SeenFire]) -> tuple[str, ...]:
    """What there was, where only their number was expected."""
    return bounded([_row("+", number, fire) for number, fire in enumerate(seen, 1)])


def holds(expected: ExpectedFire, fire: SeenFire) -> bool:
    """Whether a fire is what was written."""
    wanted = (expected.cause, expected.at, expected.event_count, expected.codon)
    there = (fire.cause, fire.at, fire.event_count, fire.codon)
    return all(one is None or one == other for one, other in zip(wanted, there, strict=True))


_Row = tuple[str, int, ExpectedFire | SeenFire]


def _aligned(expected: Sequence[ExpectedFire], seen: Sequence[SeenFire], before: int) -> Iterator[_Row]:
    """Both sides as one list in which as many as possible are the same; ``before`` is how many precede them."""
    # kept[i][j]: how many can be the same of expected[i:] and seen[j:].
    kept = [[0] * (len(seen) + 1) for _ in range(len(expected) + 1)]
    for i in range(len(expected) - 1, -1, -1):
        for j in range(len(seen) - 1, -1, -1):
            taken = kept[i + 1][j + 1] + 1 if holds(expected[i], seen[j]) else 0
            kept[i][j] = max(taken, kept[i + 1][j], kept[i][j + 1])
    i = j = 0
    while i < len(expected) or j < len(seen):
        both = i < len(expected) and j < len(seen)
        if both and holds(expected[i], seen[j]) and kept[i][j] == kept[i + 1][j + 1] + 1:
            yield " ", before + j + 1, seen[j]
            i, j = i + 1, j + 1
        elif j == len(seen) or (i < len(expected) and kept[i + 1][j] >= kept[i][j + 1]):
            yield "-", before + i + 1, expected[i]
            i += 1
        else:
            yield "+", before + j + 1, seen[j]
            j += 1


def _row(mark: str, number: int, fire: ExpectedFire | SeenFire) -> str:
    count = f"{fire.event_count:>4} event{'s' * (fire.event_count != 1)}" if fire.event_count is not None else ""
    codon = f"in {fire.codon}" if fire.codon else ""
    cells = (
        f"#{number}".ljust(4),
        (fire.at or "any time").ljust(24),
        (fire.cause or "any cause").ljust(9),
        count.ljust(11),
        codon,
    )
    return f"{_GUTTER}{mark} {visible('  '.join(cells))}".rstrip()


def _spelled(char: str) -> str:
    if char == "\t":
        return "\\t"
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{{{ord(char):x}}}"
