"""However the reads cut a stream, its lines are the same as of the whole."""

import hashlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.processes import Line, LineSplitter, Stub

STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", "합🎉é".encode(), b"abc", b"x" * 9])).map(
    b"".join
)


def naive(data: bytes, cap_bytes: int) -> list[Line]:
    """The oracle: one split over all of it."""

    def line(raw: bytes, *, terminated: bool, first: bool) -> Line:
        body = raw.removesuffix(b"\r")
        if len(body) > cap_bytes:
            return Line(b"", terminated, Stub(len(body), hashlib.sha256(body).hexdigest()))
        return Line(body.removeprefix(b"\xef\xbb\xbf") if first else body, terminated)

    *ended, rest = data.split(b"\n")
    lines = [line(raw, terminated=True, first=at == 0) for at, raw in enumerate(ended)]
    return [*lines, line(rest, terminated=False, first=not ended)] if rest else lines


@given(data=STREAMS, cuts=st.lists(st.integers(0, 200)), cap_bytes=st.integers(1, 40))
def test_lines_do_not_depend_on_where_the_reads_cut(data: bytes, cuts: list[int], cap_bytes: int) -> None:
    splitter = LineSplitter(cap_bytes)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    lines = [line for a, b in pairwise(edges) for line in splitter.feed(data[a:b])]
    assert lines + splitter.finish() == naive(data, cap_bytes)
