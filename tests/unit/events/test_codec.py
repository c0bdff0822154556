from pathlib import Path
from typing import Any

import orjson
import pytest

from hankwatch.core.errors import BadLine
from hankwatch.core.text import CUT_MARK, MAX_DEPTH
from hankwatch.events.codec import Decoded, decode_line, encode_line
from hankwatch.events.envelope import Event, format_stamp

RECEIVED_MS = 1_796_040_000_000
STAMP = "2026-11-30T12:00:00.000Z"


def read(line: bytes | dict[str, Any]) -> Decoded:
    return decode_line(line if isinstance(line, bytes) else orjson.dumps(line), received_ms=RECEIVED_MS)


def info(data: bytes) -> bytes:
    return (
        b'{"id":"e1","timestamp":"2026-11-30T12:00:00.000Z","type":"info","data":{"message":"m","details":%s}}' % data
    )


def details(data: bytes) -> Any:
    return read(info(data)).event.data["details"]


def test_a_line_has_four_keys_in_order_and_ends_with_a_newline() -> None:
    event = Event("e1", STAMP, "info", {"message": "a\u2028b"}, RECEIVED_MS)
    line = encode_line(event)
    assert line == b'{"id":"e1","timestamp":"%s","type":"info","data":{"message":"a\xe2\x80\xa8b"}}\n' % STAMP.encode()


def test_a_recorded_journal_reads_without_a_flag_and_writes_back_byte_equal(fixtures: Path) -> None:
    lines = (fixtures / "journals/recorded-0.10.events.jsonl").read_bytes().splitlines(keepends=True)
    decoded = [read(line) for line in lines]
    assert [d.flags for d in decoded] == [frozenset()] * len(lines)
    assert [encode_line(d.event) for d in decoded] == lines


def test_a_bom_and_crlf_are_no_part_of_a_line() -> None:
    line = b'{"timestamp":"2026-11-30T12:00:00.000Z","type":"info","data":{"message":"m"}}'
    assert read(b"\xef\xbb\xbf" + line + b"\r\n").event.envelope() == read(line).event.envelope()


def test_a_bom_inside_a_value_is_data() -> None:
    assert details('["\ufeffx"]'.encode()) == ["\ufeffx"]


def test_unknown_keys_of_a_payload_are_kept_and_do_not_make_it_a_misfit() -> None:
    decoded = read({"id": "e", "timestamp": STAMP, "type": "info", "data": {"message": "m", "new": {"a": 1}}})
    assert decoded.event.data["new"] == {"a": 1}
    assert decoded.flags == frozenset()


def test_a_payload_that_does_not_fit_passes_flagged() -> None:
    decoded = read({"id": "e", "timestamp": STAMP, "type": "tool.result", "data": {"isError": "yes"}})
    assert decoded.flags == {"payload-misfit"}
    assert decoded.event.data == {"isError": "yes"}


def test_the_python_spelling_of_a_key_does_not_make_a_payload_fit() -> None:
    data = {"codon_id": "c", "archived_paths": []}
    assert read({"id": "e", "timestamp": STAMP, "type": "archive.completed", "data": data}).flags == {"payload-misfit"}


def test_an_unknown_type_passes_flagged() -> None:
    decoded = read({"id": "e", "timestamp": STAMP, "type": "from.elsewhere", "data": {"a": 1}})
    assert decoded.flags == {"unknown-type"}
    assert decoded.event.type == "from.elsewhere"


@pytest.mark.parametrize(("data", "kept"), [(None, {}), ("text", {"value": "text"}), ([1], {"value": [1]})])
def test_a_payload_that_is_no_object_is_kept_under_value(data: Any, kept: dict[str, Any]) -> None:
    decoded = read({"id": "e", "timestamp": STAMP, "type": "info", "data": data})
    assert decoded.event.data == kept
    assert decoded.flags == {"payload-misfit"}


def test_more_envelope_keys_are_handed_over_beside_the_event() -> None:
    decoded = read({"id": "e", "timestamp": STAMP, "type": "info", "data": {"message": "m"}, "v": 2})
    assert decoded.extra == {"v": 2}
    assert decoded.flags == {"envelope-extra"}
    assert b'"v"' not in encode_line(decoded.event)


def test_a_line_without_an_id_gets_the_same_one_every_time() -> None:
    line = {"timestamp": STAMP, "type": "info", "data": {"message": "m"}}
    first, again, other = read(line), read(line), read(line | {"data": {"message": "other"}})
    assert first.flags == {"id-made"}
    assert first.event.id == again.event.id != other.event.id


@pytest.mark.parametrize("stamp", ["", None, "soon", True, {}])
def test_an_unreadable_stamp_becomes_the_time_of_receipt_and_is_kept(stamp: Any) -> None:
    decoded = read({"id": "e", "timestamp": stamp, "type": "info", "data": {"message": "m"}})
    assert decoded.flags == {"stamp-replaced"}
    assert decoded.event.timestamp == format_stamp(RECEIVED_MS)
    assert decoded.event.at_ms == RECEIVED_MS
    assert decoded.original_stamp == stamp


def test_a_foreign_spelling_of_a_stamp_is_written_our_way_and_kept() -> None:
    decoded = read({"id": "e", "timestamp": 1796040000.5, "type": "info", "data": {"message": "m"}})
    assert decoded.event.timestamp == "2026-11-30T12:00:00.500Z"
    assert decoded.original_stamp == 1796040000.5
    assert decoded.flags == frozenset()


def test_a_lone_surrogate_is_replaced_once_and_stays_so() -> None:
    decoded = read(info(rb'["ok \udcb2 end"]'))
    assert decoded.event.data["details"] == ["ok \ufffd end"]
    assert decoded.flags == {"cleaned"}
    assert decoded.cleaned.surrogates == 1
    assert read(encode_line(decoded.event)).flags == frozenset()


def test_a_surrogate_pair_is_its_character() -> None:
    assert details(rb'["\ud83d\ude00", "\ud800"]') == ["\U0001f600", "\ufffd"]


def test_broken_utf_8_is_replaced_and_counted() -> None:
    decoded = read(info(b'["\xff"]'))
    assert decoded.event.data["details"] == ["\ufffd"]
    assert decoded.cleaned.surrogates == 1


def test_nan_and_infinities_become_null() -> None:
    decoded = read(info(b"[NaN, Infinity, -Infinity, 1e400, 1.5]"))
    assert decoded.event.data["details"] == [None, None, None, None, 1.5]
    assert decoded.cleaned.non_finite == 4


@pytest.mark.parametrize("fits", [2**64 - 1, -(2**63), 2**63, 0, 10**18])
def test_an_integer_of_64_bit_stays_exact(fits: int) -> None:
    assert details(b"[%d]" % fits) == [fits]


@pytest.mark.parametrize("digits", ["18446744073709551616", "-9223372036854775809", "1" * 25, "7" * 5000])
def test_an_integer_beyond_64_bit_becomes_its_digits(digits: str) -> None:
    decoded = read(info(b"[%s]" % digits.encode()))
    assert decoded.event.data["details"] == [digits]
    assert decoded.cleaned.big_ints == 1


def test_a_long_fraction_stays_a_number() -> None:
    assert details(b"[0.1000000000000000055511151231257827]") == [0.1]


def test_long_digits_inside_text_stay_text() -> None:
    assert details(b'["12345678901234567890123"]') == ["12345678901234567890123"]


def nested(depth: int, innermost: bytes = b"") -> bytes:
    return b"[" * depth + innermost + b"]" * depth


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, list) and value:
        depth, value = depth + 1, value[0]
    return depth + isinstance(value, list)


# The payload object itself is one level above `details`.
def test_the_deepest_nesting_allowed_is_kept() -> None:
    decoded = read(info(nested(MAX_DEPTH - 1)))
    assert depth_of(decoded.event.data["details"]) == MAX_DEPTH - 1
    assert decoded.flags == frozenset()


@pytest.mark.parametrize("depth", [MAX_DEPTH, 254, 1000, 5000])
@pytest.mark.parametrize("innermost", [b"", b"NaN", b"12345678901234567890", b'"]}"'])
def test_deeper_nesting_is_cut_whichever_way_the_line_is_read(depth: int, innermost: bytes) -> None:
    decoded = read(info(nested(depth, innermost)))
    value = decoded.event.data["details"]
    for _ in range(MAX_DEPTH - 1):
        value = value[0]
    assert value == CUT_MARK
    assert decoded.cleaned.cut_depth == 1
    assert encode_line(read(encode_line(decoded.event)).event) == encode_line(decoded.event)


def test_what_follows_a_cut_is_kept() -> None:
    kept = nested(5000, b'"]["') + b',"after","\\"["'
    assert details(b"[" + kept + b"]")[1:] == ["after", '"[']


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  \r\n",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{}",
        b'{"type":""}',
        b'{"type":5}',
        b'{"id":"e","type":"info"} trailing',
        b'{"id":"e","type":"in\nfo"}',
        b"\x00\xff\xfe",
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b"]" * 1_000_000,
        b'"' + b'\\"' * 1_000_000,
        b"9" * 1_000_000,
    ],
    ids=lambda line: line[:12],
)
def test_what_no_parser_takes_is_a_bad_line(line: bytes) -> None:
    with pytest.raises(BadLine):
        read(line)


def test_a_line_of_ten_megabytes_is_read() -> None:
    assert details(b'["%s"]' % (b"x" * 10_000_000)) == ["x" * 10_000_000]


def test_a_payload_built_without_intake_can_still_be_written() -> None:
    event = Event("e", STAMP, "info", {"message": "a\ud800", "details": [2**70]}, RECEIVED_MS)
    assert read(encode_line(event)).event.data == {"message": "a\ufffd", "details": [str(2**70)]}
