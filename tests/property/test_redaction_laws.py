"""Laws of redaction: nothing known gets through, and the cheap test of a line never says no wrongly."""

from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hankwatch.core.redaction import Redactor

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SHAPED = st.sampled_from(
    [
        "sk-ant-abcdefghij",
        "ghp_abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyDxabcdefghijklmnopqrstuvwxyz01234",
        "eyJhbGciOiJI.eyJzdWIiOiIx.abc",
        "Bearer abcdefghijklmnopqrstuvwxyz",
        "authorization: basic abcdefghij",
        "X-Api-Key: abcdefghijklmnop",
        "?key=abcdefghijkl",
        "x://u:secret!@h",
        "MY_TOKEN=abcdefgh12345678",
        "-----BEGIN PRIVATE KEY-----\nabc",
        "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuv",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    ]
)
GLUE = st.sampled_from(["", " ", "\n", "\t", '"', "\\", "/", "=", "-", "_", "a", "é", "\x00"])
STRING = st.lists(TEXT | SHAPED | GLUE, max_size=6).map("".join)
DATA = st.dictionaries(
    STRING,
    st.recursive(STRING | st.integers(0, 9), lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=3,
)


@settings(max_examples=200)
@given(DATA)
@example({"authorization: basic abcdefghij=AKIAIOSFODNN7EXAMPLE": []})
def test_a_line_that_is_not_suspected_holds_no_secret(data: dict[str, Any]) -> None:
    redactor = Redactor()
    clean = redactor.data(data)
    if not redactor.suspects(orjson.dumps(data)):
        assert clean is data
    assert redactor.data(clean) == clean


@settings(max_examples=200)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=8, max_size=15).map(str.strip), max_size=3), TEXT, TEXT)
def test_no_known_value_gets_through(values: list[str], before: str, after: str) -> None:
    redactor = Redactor({f"S{number}": value for number, value in enumerate(values)})
    for value in values:
        if len(value) >= 8:
            data = {"key": [before + value + after]}
            assert redactor.suspects(orjson.dumps(data))
            assert redactor.data(data) is not data
