"""Lines of an MCP client: whole ones come as they are, longer ones as no message, and what follows stays in step."""

from io import BytesIO

import pytest

from hankwatch.serve.mcp_stdio import MAX_LINE_CHARS, BoundedLines


def read(data: bytes) -> list[str]:
    text = BoundedLines(BytesIO(data), encoding="utf-8", errors="replace")
    return list(iter(text.readline, ""))


@pytest.mark.parametrize("length", [0, 1, MAX_LINE_CHARS - 1])
def test_a_line_within_the_limit_is_whole(length: int) -> None:
    assert read(b"x" * length + b"\nnext\n") == ["x" * length + "\n", "next\n"]


@pytest.mark.parametrize("length", [MAX_LINE_CHARS, MAX_LINE_CHARS + 1, 3 * MAX_LINE_CHARS, 20 * MAX_LINE_CHARS + 7])
def test_a_longer_line_is_no_message_and_the_next_one_is_read(length: int) -> None:
    long, after = read(b"{" * (length + 1) + b"\nnext\n")
    assert (len(long) < 100, "{" in long, after) == (True, False, "next\n")


def test_a_longer_line_may_be_the_last_and_may_be_cut_off() -> None:
    assert ["{" in line for line in read(b"a\n" + b"{" * 2 * MAX_LINE_CHARS)] == [False, False]
