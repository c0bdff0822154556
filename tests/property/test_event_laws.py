"""Laws of reading and writing events, whatever bytes come."""

import contextlib
import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hankwatch.core.clock import EARLIEST_MS, LATEST_MS
from hankwatch.core.errors import BadLine
from hankwatch.core.text import MAX_DEPTH, clean_json
from hankwatch.events.catalogue import PAYLOADS, has_path
from hankwatch.events.codec import decode_line, encode_line
from hankwatch.events.envelope import format_stamp
from hankwatch.events.stamps import is_canonical, parse_stamp

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
DIRTY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(2**63, 2**70) | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
)
TYPE = st.sampled_from([*PAYLOADS, "from.elsewhere"])
ENVELOPE = st.fixed_dictionaries(
    {"type": TYPE},
    optional={"id": DIRTY, "timestamp": DIRTY | st.datetimes().map(str), "data": DIRTY, "more": DIRTY},
)


def as_json(value: Any) -> bytes:
    """JSON as careless programs print it: surrogate escapes, NaN, integers of any size."""
    return json.dumps(value).encode()


@settings(max_examples=200)
@given(ENVELOPE, st.floats(0, 1), st.binary(max_size=5))
def test_of_a_damaged_line_only_a_bad_line_is_raised(envelope: dict[str, Any], where: float, junk: bytes) -> None:
    line = as_json(envelope)
    cut = int(where * len(line))
    for damaged in (line[:cut], line[:cut] + junk, line[:cut] + junk + line[cut:], junk):
        with contextlib.suppress(BadLine):
            decode_line(damaged, received_ms=0)


@settings(max_examples=200)
@given(ENVELOPE)
def test_what_was_read_writes_and_reads_back_unchanged(envelope: dict[str, Any]) -> None:
    first = decode_line(as_json(envelope), received_ms=5)
    line = encode_line(first.event)
    second = decode_line(line, received_ms=6)
    assert second.event.envelope() == first.event.envelope()
    assert not second.flags & {"cleaned", "stamp-replaced", "id-made", "envelope-extra"}
    assert encode_line(second.event) == line


@given(DIRTY)
def test_a_clean_value_is_taken_by_every_writer_and_stays_as_it_is(value: Any) -> None:
    clean, _ = clean_json(value)
    again, cleaned = clean_json(clean)
    assert orjson.loads(orjson.dumps(clean)) == clean == again
    assert not cleaned


@given(st.integers(1, 400), st.sampled_from(["", "NaN", "1" * 20]))
def test_both_ways_of_cutting_agree(depth: int, innermost: str) -> None:
    text = '[{"k":' * (depth // 2) + "[" * (depth % 2) + (innermost or "0") + "]" * (depth % 2) + "}]" * (depth // 2)
    line = b'{"type":"from.elsewhere","data":{"v":%s}}' % text.encode()
    decoded = decode_line(line, received_ms=0)
    assert (decoded.cleaned.cut_depth == 1) is (depth > MAX_DEPTH - 1)


@given(st.integers(EARLIEST_MS, LATEST_MS))
def test_a_stamp_reads_back_as_its_instant(at_ms: int) -> None:
    assert parse_stamp(format_stamp(at_ms)) == at_ms


@given(st.integers())
def test_every_instant_has_a_stamp_and_later_ones_no_earlier_stamp(at_ms: int) -> None:
    assert is_canonical(format_stamp(at_ms))
    assert format_stamp(at_ms) <= format_stamp(at_ms + 1)


@given(DIRTY)
def test_no_stamp_makes_reading_fail(value: Any) -> None:
    at_ms = parse_stamp(value)
    if at_ms is not None:
        assert parse_stamp(format_stamp(at_ms)) == at_ms


@given(TYPE | st.just("*"), st.text(st.sampled_from("abcDiorsutlengthI.0²"), max_size=30) | ANY_TEXT)
def test_any_path_has_an_answer(name: str, path: str) -> None:
    assert has_path(name, path) in (True, False)


@pytest.mark.parametrize("size", [1_000, 10_000])
def test_deep_lines_never_recurse(size: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        line = b'{"type":"info","data":{"message":"m","details":[%s1%s]}}' % (opening * size, closing * size)
        assert decode_line(line, received_ms=0).cleaned.cut_depth == 1
