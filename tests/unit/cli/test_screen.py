"""Printing never waits for its reader, and says what it left out."""

import threading

import pytest

from hankwatch.cli import screen as module
from hankwatch.cli.screen import Screen


class Reader:
    """Takes lines once it is let go."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.go = threading.Event()
        self.busy = threading.Event()

    def take(self, line: str) -> None:
        self.busy.set()
        self.go.wait(10)
        self.lines.append(line)


def blocked(reader: Reader) -> Screen:
    """A screen whose first line waits for its reader."""
    screen = Screen(lambda count: reader.take(f"{count} missing"))
    screen.show(lambda: reader.take("first"))
    reader.busy.wait(10)
    return screen


async def test_lines_come_in_order_and_finish_waits_for_them() -> None:
    reader = Reader()
    screen = blocked(reader)
    for number in range(100):
        screen.show(lambda number=number: reader.take(str(number)))  # type: ignore[misc]
    assert reader.lines == []
    reader.go.set()
    await screen.finish()
    assert reader.lines == ["first", *map(str, range(100))]


@pytest.mark.parametrize(("lines", "size_bytes"), [(2, 0), (100, 600)])
async def test_what_does_not_fit_is_counted_and_told(
    monkeypatch: pytest.MonkeyPatch, lines: int, size_bytes: int
) -> None:
    monkeypatch.setattr(module, "BACKLOG", lines)
    monkeypatch.setattr(module, "BACKLOG_BYTES", 1_000)
    reader = Reader()
    screen = blocked(reader)
    for name in ("a", "b", "c", "d"):
        screen.show(lambda name=name: reader.take(name), size_bytes=size_bytes)  # type: ignore[misc]
    screen.show(lambda: reader.take("summary"), even_when_full=True)
    reader.go.set()
    await screen.finish()
    assert reader.lines == ["first", "2 missing", "a", "b", "summary"]


async def test_a_line_that_cannot_be_shown_takes_no_other_with_it() -> None:
    reader = Reader()
    reader.go.set()
    screen = Screen(lambda _: None)
    screen.show(lambda: 1 / 0)  # type: ignore[arg-type]
    screen.show(lambda: reader.take("next"))
    await screen.finish()
    assert reader.lines == ["next"]


async def test_finish_waits_no_longer_than_it_may() -> None:
    reader = Reader()
    screen = blocked(reader)
    await screen.finish(within_s=0.01)
    assert reader.lines == []
    reader.go.set()
    await screen.finish()
