"""The shortest period of a text (spec watchdog 5.3)."""

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.watchdog.chants import Chant, chant


def prefix_function_period(text: str) -> int:
    """N - pi(n), as Knuth, Morris and Pratt have it."""
    borders = [0] * len(text)
    for place in range(1, len(text)):
        length = borders[place - 1]
        while length and text[place] != text[length]:
            length = borders[length - 1]
        borders[place] = length + (text[place] == text[length])
    return len(text) - borders[-1]


@given(st.text("ab ", min_size=1, max_size=6), st.integers(1, 60), st.text("ab ", max_size=3))
def test_the_period_is_that_of_the_prefix_function(unit: str, times: int, rest: str) -> None:
    text = unit * times + rest
    period, found = prefix_function_period(text), chant(text, letters=False)
    if period <= 80 and len(text) >= 8 * period:
        assert found is not None
        assert (len(found.unit), found.repeats) == (period, len(text) // period)
    else:
        assert found is None


@given(st.integers(0, 9))
def test_pieces_cut_at_other_places_agree_on_the_unit(turn: int) -> None:
    assert chant(("yes agree " * 30)[turn : turn + 200]) == Chant(" agree yes", 20)


def test_a_unit_needs_a_letter_unless_the_line_is_no_prose() -> None:
    assert chant("?!" * 100) is None
    assert chant("1 " * 100) is None
    assert chant("?!" * 100, letters=False) == Chant("!?", 100)


def test_seven_copies_or_a_longer_unit_are_no_chant() -> None:
    assert chant("abcdefgh " * 7) is None
    assert chant(("x" * 80 + "y") * 20) is None
    assert chant("") is None
