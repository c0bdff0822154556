"""The scanner agrees with the standard decoder on every document, and never fails on any text."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.config.source import Document

_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON, st.sampled_from([None, 2]))
def test_a_document_reads_as_the_standard_decoder_reads_it(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    document = Document.parse(text, "f")
    assert document.faults == ()
    assert document.value == json.loads(text)


@given(st.text(alphabet='{}[]",:\\/*nul0.e-#\n \ufeffé', max_size=40))
def test_any_text_is_read_or_is_a_fault(text: str) -> None:
    document = Document.parse(text, "f")
    assert document.readable or document.faults
    for fault in document.faults:
        assert fault.line is not None
        assert fault.column is not None


@given(_JSON)
def test_every_place_points_at_its_value(value: Any) -> None:
    text = json.dumps(value, indent=1)
    document = Document.parse(text, "f")
    lines = text.split("\n")
    for pointer in document.places or {}:
        place = document.locate(pointer)
        assert place is not None
        rest = "\n".join([lines[place[0] - 1][place[1] - 1 :], *lines[place[0] :]])
        found, _ = json.JSONDecoder().raw_decode(rest)
        assert found == document.at(pointer)
