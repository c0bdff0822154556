"""Authored patterns mean what JavaScript means without flags, and never run away."""

import pytest

from hankwatch.matching.regexes import RegexInvalid, compile_js

MEANINGS = [
    # ASCII classes, JavaScript's white space, line ends and end of text
    (r"\d", "٣", False),
    (r"\w", "é", False),
    (r"\bé", "é", False),
    (r"\B\B", "k\ufeffA", False),
    (r"\B", "\ufeff", True),
    (r"b\B|^\Bc", "ab bc", True),
    (r"[\W]", "é", True),
    (r"^\s$", "\ufeff", True),
    (r"^\S$", "\ufeff", False),
    (r"[^\S]", "\u00a0", True),
    (r"[\S]", "\u00a0", False),
    (r".", "\u2028", False),
    (r"x$", "x\n", False),
    # code units
    (r"^.$", "😀", False),
    (r"^..$", "😀", True),
    (r"\uD83D\uDE00", "😀", True),
    ("[😀]", "\U0001f601", True),
    (r"[\ud800-\udfff]", "x😀", True),
    ("\ud83d", "\ud83d", True),
    # escapes
    (r"\u0041\x42", "AB", True),
    (r"\u{3}", "uuu", True),
    (r"\u{1F600}", "u{1F600}", True),
    (r"\xZ\A\Z\e", "xZAZe", True),
    (r"\p{L}", "p{L}", True),
    (r"\cJ\0\12", "\n\0\n", True),
    (r"\c", "\\c", True),
    (r"\8\-\_\/", "8-_/", True),
    # repeats and braces
    ("a{,2}", "a{,2}", True),
    ("a{,2}", "aa", False),
    ("}]{", "}]{", True),
    ("a{1001}", "a" * 1001, True),
    ("(?=a)*b", "b", True),
    # classes
    ("[]", "x", False),
    ("[^]", "\n", True),
    (r"[\b]", "\b", True),
    (r"[\d-x]", "-", True),
    ("[[:alpha:]]", "a]", True),
    ("[a&&b]", "&", True),
    ("[*--]", "+", True),
    # groups
    (r"(?<n>a)\k<n>", "aa", True),
    (r"(?<n>a)\k<n>", "ab", False),
    (r"\k<n>", "k<n>", True),
    (r"(a)|b\1", "b", True),
    (r"(a\1)", "a", True),
    (r"\2(a)(b)", "ab", True),
    ("(?!a)b", "b", True),
    ("(?<=a)b", "ab", True),
    ("(?i:a)", "A", True),
    ("", "anything", True),
]

INVALID = [
    "*", "a**", "a*+", "a{2}{3}", "a{3,2}", "a|*", "^*", "(?<=a)*", "(?i)a", "(?P<x>a)", "(?<1>a)", "(?<n>a)(?<n>b)",
    r"(?<n>a)\k<m>", "(", ")", "[z-a]", "[a", "\\", "(" * 200 + ")" * 200, "a{99999999999999999999}",
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "occurs"), MEANINGS)
def test_a_pattern_means_what_javascript_means(pattern: str, text: str, occurs: bool) -> None:
    assert compile_js(pattern).search(text) is occurs


@pytest.mark.parametrize("pattern", INVALID)
def test_what_javascript_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(RegexInvalid):
        compile_js(pattern)


@pytest.mark.parametrize("pattern", ["(?:a{1000}){1000}", "a{20000}{2}", "(?:(?:a{1000}){1000}){1000}"])
def test_repeats_that_would_fill_the_memory_are_refused(pattern: str) -> None:
    with pytest.raises(RegexInvalid):
        compile_js(pattern)


def test_a_refused_pattern_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    compile_js("(?=printed)(x)")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|aa)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_evil_patterns_stay_linear(pattern: str) -> None:
    assert not compile_js(pattern).search("a" * 50_000 + "\n!")  # would outlast the test's time limit by years


def test_an_overrun_is_no_match_and_the_owner_is_told() -> None:
    told: list[int] = []
    regex = compile_js(r"^(a|aa)+$(?=)", lambda: told.append(1))
    assert regex.search("a" * 5_000 + "b") is False
    assert told == [1]
    assert regex.search("aaa") is True
    assert told == [1]
