"""A request as text, and what changed between two."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.llm import Message, ModelRequest
from hankwatch.llm.call import digest_of
from hankwatch.llm.difference import difference, request_text

REQUEST = ModelRequest(
    "acme/one",
    (Message("system", "be brief"), Message("user", "Look.\nSay ok.")),
    json_schema={"type": "object", "properties": {}},
    schema_name="verdict",
)


def _ask(text: str) -> ModelRequest:
    return replace(REQUEST, messages=(Message("user", text),))


def test_a_request_reads_from_top_to_bottom() -> None:
    assert request_text(REQUEST) == (
        "model: acme/one\ntemperature: 0\nmaxOutputTokens: 8192\nschemaName: verdict\njsonSchema:\n"
        '{\n  "properties": {},\n  "type": "object"\n}\n'
        "--- system\nbe brief\n--- user\nLook.\nSay ok.\n"
    )


def test_a_change_inside_a_long_line_is_shown_as_its_part() -> None:
    long = "x" * 1_000
    assert difference(_ask(long + "one"), _ask(long + "two")).count("\n") < 10


def test_a_long_difference_is_cut_and_says_so() -> None:
    lines = difference(
        _ask("\n".join(f"a{n}" for n in range(500))), _ask("\n".join(f"b{n}" for n in range(500)))
    ).splitlines()
    assert len(lines) == 61
    assert lines[-1].startswith("… ")


def test_a_change_behind_a_long_beginning_is_found() -> None:
    begin = "\n".join(f"line {n}" for n in range(20_000))
    assert difference(_ask(f"{begin}\none"), _ask(f"{begin}\ntwo")).endswith("-one\n+two")


def test_an_addition_at_the_end_is_found() -> None:
    assert difference(_ask("one"), _ask("one\ntwo")).endswith("+two")


@given(one=st.text("ab\n"), other=st.text("ab\n"))
def test_requests_differ_in_text_exactly_when_they_differ_in_digest(one: str, other: str) -> None:
    assert bool(difference(_ask(one), _ask(other))) == (digest_of(_ask(one)) != digest_of(_ask(other)))
