"""The live view drawn: it fits every terminal, and nothing in it is a control sequence."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.screen import Screen

from hankwatch.cli.terminal import console
from hankwatch.cli.view import draw, duration
from hankwatch.cli.view_model import CodonRow, Frame, SentinelRow
from hankwatch.testing import make_event

HOSTILE = "漢字 \x1b[2J\x1b]0;title\x07 and \r\n more"


def frame(codons: int = 3, sentinels: int = 2, events: int = 50, *, live: int = 0, status: str = "") -> Frame:
    states = ["completed"] * live + ["running"] + ["waiting"] * codons
    return Frame(
        hank=f"hank {HOSTILE}",
        outcome="running",
        seconds=3_725.0,
        cost_usd=0.5,
        sentinel_cost_usd=None,
        codons=tuple(CodonRow(f"codon-{n}", states[n], 1.0, 0.25, 1_234_567, HOSTILE) for n in range(codons)),
        sentinels=tuple(
            SentinelRow(f"sentinel-{n}", "codon-0", "watching", 1, 2, 0, 0.1, HOSTILE, loaded=True)
            for n in range(sentinels)
        ),
        events=tuple(make_event("info", message=f"event {n} {HOSTILE}") for n in range(events)),
        status=status,
    )


def drawn(shown: Frame, width: int, height: int) -> list[str]:
    """The lines of a screen of this size."""
    out = io.StringIO()
    printer = console(out)
    printer.size = (width, height)
    printer.print(Screen(draw(shown, width, height, has_keys=True)), end="", soft_wrap=False)
    return out.getvalue().split("\n")


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 200), st.integers(5, 60), st.integers(1, 30), st.integers(0, 30), st.integers(0, 80), st.text())
def test_every_frame_fills_its_terminal_exactly(
    width: int, height: int, codons: int, sentinels: int, events: int, status: str
) -> None:
    lines = drawn(frame(codons, sentinels, events, status=status), width, height)
    assert len(lines) == height
    assert {cell_len(line) for line in lines} == {width}
    assert not any(character < " " for line in lines for character in line)


@pytest.mark.parametrize(("width", "height"), [(120, 40), (40, 20), (20, 8)])
def test_what_is_under_way_the_latest_event_and_the_keys_are_always_seen(width: int, height: int) -> None:
    text = drawn(frame(30, 20, live=25), width, height)
    assert text[0].startswith("running")
    assert any(line.startswith("codon-25") for line in text) or width < 40
    assert "n next s skip" in text[-1]
    assert height < 10 or any("event 49" in line for line in text) or width < 40


@pytest.mark.parametrize("live", range(4))
@pytest.mark.parametrize("height", range(5, 12))
def test_the_codon_under_way_is_seen_on_the_smallest_terminal(live: int, height: int) -> None:
    lines = drawn(frame(4, 0, 3, live=live), 60, height)
    assert any(f"codon-{live}" in line for line in lines)


def test_a_narrow_terminal_keeps_the_numbers_of_sentinels() -> None:
    text = drawn(frame(), 40, 20)
    (head,) = (line for line in text if line.startswith("sentinel "))
    assert head.split() == ["sentinel", "state", "queue", "fired", "cost"]


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0:00"), (61, "1:01"), (3_600, "1:00:00"), (360_000, "100:00:00")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
