"""Lines of a journal, long ones included."""

import gzip
import io

import pytest

from hankwatch.stream.journal_lines import journal_lines


@pytest.mark.parametrize("ending", [b"\n", b""])
@pytest.mark.parametrize("length", [10, 11, 5_000_000])
def test_a_line_over_the_limit_is_counted_and_not_kept(length: int, ending: bytes) -> None:
    long = b"x" * length + ending
    file = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b"short\n" + long + (b"last\n" if ending else b""))))
    first, second, *rest = journal_lines(file, 10)
    assert first == (b"short\n", 6)
    kept = len(long) <= 10
    assert second == (long if kept else b"\x00" + ending, len(long))
    assert rest == ([(b"last\n", 5)] if ending else [])
