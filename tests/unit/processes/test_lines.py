"""Bytes into lines: line ends, marks, lengths (spec hank 2; cases A3, A4, A5)."""

import hashlib

import pytest

from hankwatch.processes import Line, LineSplitter, Stub

CHUNK_BYTES = 64 * 1024


def split(data: bytes, chunk_bytes: int = CHUNK_BYTES, cap_bytes: int = 1 << 25) -> list[Line]:
    splitter = LineSplitter(cap_bytes)
    chunks = (data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes))
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


def test_only_newline_bytes_end_a_line() -> None:
    inside = "a\u2028b\u0085c\x0cd\re".encode()
    assert split(inside + b"\nnext\n") == [Line(inside), Line(b"next")]


def test_crlf_is_one_line_end_also_when_the_read_cuts_it() -> None:
    assert split(b"one\r\ntwo\r\n", chunk_bytes=4) == [Line(b"one"), Line(b"two")]


def test_empty_lines_are_lines() -> None:
    assert split(b"\n\na\n") == [Line(b""), Line(b""), Line(b"a")]


def test_a_truncated_last_line_is_given_as_unterminated() -> None:
    assert split(b'{"a":1}\n{"b"') == [Line(b'{"a":1}'), Line(b'{"b"', terminated=False)]


def test_a_stream_that_ends_with_a_newline_leaves_nothing() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\n") == [Line(b"a")]
    assert splitter.finish() == []


@pytest.mark.parametrize("chunk_bytes", [1, 2, 100])
def test_a_byte_order_mark_is_dropped_at_the_start_and_is_data_elsewhere(chunk_bytes: int) -> None:
    mark = b"\xef\xbb\xbf"
    assert split(mark + b"a\n" + mark + b"b\n", chunk_bytes) == [Line(b"a"), Line(mark + b"b")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, CHUNK_BYTES])
def test_a_line_over_the_cap_becomes_a_stub_and_the_rest_stays_in_step(chunk_bytes: int, end: bytes) -> None:
    lines = [b"x" * length for length in (99, 100, 101, 100, 250)]
    expected = [
        Line(line) if len(line) <= 100 else Line(b"", stub=Stub(len(line), hashlib.sha256(line).hexdigest()))
        for line in lines
    ]
    assert split(b"".join(line + end for line in lines), chunk_bytes, cap_bytes=100) == expected


def test_a_line_over_the_cap_that_never_ends_is_an_unterminated_stub() -> None:
    line = b"y" * 300
    assert split(line, cap_bytes=100) == [Line(b"", False, Stub(300, hashlib.sha256(line).hexdigest()))]


@pytest.mark.parametrize("length", [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 1 << 20, (1 << 20) + 1])
def test_a_line_that_ends_at_the_edge_of_a_read_is_whole(length: int) -> None:
    assert split(b"z" * length + b"\nnext\n") == [Line(b"z" * length), Line(b"next")]
