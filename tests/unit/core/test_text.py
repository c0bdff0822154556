import math

import pytest

from hankwatch.core.text import CUT_MARK, MAX_DEPTH, Cleaned, clean_json, clean_text, shorten, strip_controls


def test_clean_text_is_the_same_object() -> None:
    text = "plain \U0001f600 text"
    assert clean_text(text) is text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ok \udcb2 end", "ok \ufffd end"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ufeff\ud800", "\ufeff\ufffd"),
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character(text: str, clean: str) -> None:
    assert clean_text(text) == clean


def test_each_kind_of_cleaning_is_counted() -> None:
    value = {"a\ud800": ["b\udfff", math.nan, -math.inf, 2**64, -(2**63) - 1, 2**64 - 1, True, None, 1.5]}
    clean, cleaned = clean_json(value)
    assert clean == {"a\ufffd": ["b\ufffd", None, None, str(2**64), str(-(2**63) - 1), 2**64 - 1, True, None, 1.5]}
    assert cleaned == Cleaned(surrogates=2, non_finite=2, big_ints=2)
    assert cleaned


def test_a_clean_value_counts_nothing() -> None:
    assert clean_json({"a": [1, "x", None]}) == ({"a": [1, "x", None]}, Cleaned())
    assert not Cleaned()


def test_nesting_is_cut_below_the_limit() -> None:
    value: list[object] = []
    for _ in range(MAX_DEPTH):
        value = [value]
    clean, cleaned = clean_json(value)
    assert cleaned == Cleaned(cut_depth=1)
    for _ in range(MAX_DEPTH):
        clean = clean[0]
    assert clean == CUT_MARK


def test_an_integer_too_long_for_decimal_digits_is_written_in_hexadecimal() -> None:
    clean, _ = clean_json(10**5000)
    assert clean == hex(10**5000)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1;31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ended\nnext line", "never ended\nnext line"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x1bcreset \x1b(B", "reset "),
        ("bell\x07 back\x08 nul\x00 del\x7f c1\x85", "bell back nul del c1"),
        ("line\r\n", "line\n"),
        ("\x1b\x1b[2Jtwice", "twice"),
        ("invoice\u202efdp.exe\u202c \u2066x\u2069", "invoicefdp.exe x"),
        ("h\u00e9 \U0001f600", "h\u00e9 \U0001f600"),
    ],
)
def test_nothing_that_steers_a_terminal_is_left(text: str, clean: str) -> None:
    assert strip_controls(text) == clean


@pytest.mark.parametrize(
    ("limit", "marker", "short"),
    [(5, "…", "abcde"), (4, "…", "abc…"), (4, "...", "a..."), (1, "...", "."), (0, "…", "")],
)
def test_a_shortened_text_never_exceeds_its_limit(limit: int, marker: str, short: str) -> None:
    assert shorten("abcde", limit, marker) == short
