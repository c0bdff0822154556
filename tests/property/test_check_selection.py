"""``-k`` reads expressions as Python would, were each word a question."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hankwatch.bench.check.selection import selector
from hankwatch.core.errors import UsageError

WORDS = st.sampled_from(["narrator", "a/b", "demo-1", "NoT-word", "or2", "x.y", "andy"])
IDS = st.lists(WORDS, max_size=3).map("/".join)
EXPRESSIONS = st.recursive(
    WORDS.map(lambda word: (word, f"({word.lower()!r} in name)")),
    lambda inner: st.one_of(
        st.tuples(inner, inner, st.sampled_from(["and", "or"])).map(
            lambda parts: (f"{parts[0][0]} {parts[2]} {parts[1][0]}", f"{parts[0][1]} {parts[2]} {parts[1][1]}")
        ),
        inner.map(lambda one: (f"not {one[0]}", f"not {one[1]}")),
        inner.map(lambda one: (f"({one[0]} )", f"({one[1]})")),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, IDS)
def test_it_chooses_what_python_would(expression: tuple[str, str], name: str) -> None:
    written, python = expression
    assert selector(written)(name) is bool(eval(python, {"name": name.lower()}))


@given(st.lists(st.sampled_from(["and", "or", "not", "(", ")", "a", "b"]), max_size=8).map(" ".join))
def test_what_is_no_expression_for_python_is_refused(expression: str) -> None:
    try:
        compile(expression, "", "eval")
        is_one = expression.strip() != "" and "( )" not in expression and not _calls(expression)
    except SyntaxError:
        is_one = False
    if is_one:
        selector(expression)
    else:
        with pytest.raises(UsageError):
            selector(expression)


def _calls(expression: str) -> bool:
    """A word before a bracket is a call to Python."""
    words = expression.split()
    return any(one in {"a", "b", ")"} and other == "(" for one, other in pairwise(words))


def test_depth_has_a_limit() -> None:
    with pytest.raises(UsageError, match="too deep"):
        selector("(" * 100_000)
    with pytest.raises(UsageError, match="too deep"):
        selector("not " * 100_000 + "a")
