"""Which paths a hank's globs take, and which folders are worth looking into."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hankwatch.runner.globs import Globs


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*.md", ["a.md", ".md", "ü.md"], ["a/b.md", "a.mdx", "A.MD"]),
        ("**/*.md", ["a.md", "a/b.md", "a/b/c.md"], ["a.txt"]),
        ("src", ["src", "src/a", "src/a/b"], ["srcs/a", "x/src"]),
        ("src/", ["src/a"], ["srcs"]),
        ("./src/**", ["src/a", "src/a/b", "src/.env"], ["srcs/a"]),
        ("src/*", ["src/a"], ["src/a/b", "a"]),
        ("src/**/test_?.py", ["src/test_a.py", "src/x/y/test_b.py"], ["src/test_ab.py"]),
        ("{a,b/{c,d}}.txt", ["a.txt", "b/c.txt", "b/d.txt"], ["c.txt", "b.txt"]),
        ("[!a]*", ["b", "bcd"], ["a", "abc"]),
        ("**", ["a", "a/b", "a/b/c"], []),
        (".", ["a", "a/b"], []),
        ("a/**/**/b", ["a/b", "a/x/b", "a/x/y/b", "a/b/deep"], ["a", "ab"]),
        ("we ird\n*'\"", ["we ird\nx'\""], ["we ird"]),
        ("-rf/*", ["-rf/x"], ["rf/x"]),
        ("a(b|c)+", ["a(b|c)+"], ["ab"]),
    ],
)
def test_a_glob_takes_what_people_expect(pattern: str, taken: list[str], left: list[str]) -> None:
    globs = Globs([pattern])
    assert [path for path in taken if not globs.match(path)] == []
    assert [path for path in left if globs.match(path)] == []


def test_no_pattern_takes_nothing() -> None:
    globs = Globs([])
    assert not globs
    assert not globs.match("a")
    assert not globs.reach("")


def test_a_folder_is_worth_a_look_only_when_something_below_it_can_match() -> None:
    globs = Globs(["src/*.py", "docs/**/*.md", "notes"])
    assert [f for f in ("", "src", "docs", "docs/x/y", "notes", "notes/deep") if not globs.reach(f)] == []
    assert [f for f in ("src/x", "node_modules", "x/docs", "note") if globs.reach(f)] == []


def test_a_pattern_full_of_stars_is_matched_in_linear_time() -> None:
    assert not Globs(["**/" * 50 + "*a" * 50 + "b"]).match("/".join(["a" * 200] * 100))
    assert len(Globs(["{a,b}" * 30])._alternatives) <= 200


NAMES = st.sampled_from(["a", "b", "ab", ".x"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PATTERNS = st.lists(st.sampled_from(["a", "*", "**", "a*", "?", "{a,b}", "[ab]"]), min_size=1, max_size=4).map("/".join)


@given(PATTERNS, PATHS)
def test_every_folder_above_a_match_is_worth_a_look(pattern: str, path: str) -> None:
    globs = Globs([pattern])
    parts = path.split("/")
    if globs.match(path):
        assert all(globs.reach("/".join(parts[:depth])) for depth in range(len(parts)))
