"""Text that acts or hides is shown as signs."""

import pytest

from hankwatch.pages.visible import Excerpt, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "⟨ESC⟩[31mred⟨ESC⟩[0m"),
        ("\x1b]0;title\x07", "⟨ESC⟩]0;title⟨BEL⟩"),
        ("\x9b2J", "⟨U+009B⟩2J"),
        ("del\x7f nul\x00 cr\r.", "del⟨U+007F⟩ nul⟨NUL⟩ cr⟨CR⟩."),
        ("dos\r\nlines", "dos\nlines"),
        ("\u202etxt.exe", "⟨U+202E⟩txt.exe"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("lone \ud800", "lone \ufffd"),
        ("👩\u200d💻 é 漢", "👩\u200d💻 é 漢"),
    ],
)
def test_what_acts_or_hides_becomes_a_sign_and_the_rest_stays(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_an_excerpt_counts_what_it_leaves_out() -> None:
    assert Excerpt.of("12345", 5) == Excerpt("12345", 0)
    assert Excerpt.of("1234567", 5) == Excerpt("12345", 2)
