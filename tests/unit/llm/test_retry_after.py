"""A12: how long a provider asks to be left alone, in each form it may say so."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hankwatch.llm.retry_after import retry_after_s

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": " 7 "}, 7),
        ({"RETRY-AFTER": "0.5"}, 0.5),
        ({"Retry-After": "0"}, 0),
        ({"retry-after-ms": "634"}, 0.634),
        ({"retry-after-ms": "634", "Retry-After": "1"}, 0.634),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:07 GMT"}, 7),
        ({"Retry-After": "Monday, 30-Nov-26 12:00:07 GMT"}, 7),
        ({"Retry-After": "Mon Nov 30 12:00:07 2026"}, 7),
        ({"Retry-After": "Mon, 30 Nov 2026 13:00:07 +0100"}, 7),
        ({"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
    ],
)
def test_a_header_is_read_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_s(headers, "", now=NOW) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "soon", "-3", "nan", "inf", "1e999", "Mon, 99 Nov 2026 12:00:07 GMT", "7 s"])
def test_a_header_that_cannot_be_meant_is_none(value: str) -> None:
    assert retry_after_s({"Retry-After": value}, "", now=NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 634ms. Visit …", 0.634),
        ("Please try again in 20s.", 20),
        ("please retry after 12 seconds", 12),
        ("Please try again in 1m26.4s", 86.4),
        ("try again in 6m0s", 360),
        ("Try again in 2 minutes", 120),
        ("try again in 1h", 3600),
        ("try again in 5", 5),
        ("try again in 5 more attempts", 5),
        ("Please retry in 34.07s.", 34.07),
        ('"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]', 34),
    ],
)
def test_a_phrase_in_the_body_counts_when_no_header_does(text: str, seconds: float) -> None:
    assert retry_after_s({}, text, now=NOW) == pytest.approx(seconds)
    assert retry_after_s({"Retry-After": "3"}, text, now=NOW) == 3
    assert retry_after_s({"Retry-After": "soon"}, text, now=NOW) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "slow down", "try again later", "try again in a moment", "retry"])
def test_what_names_no_time_asks_for_none(text: str) -> None:
    assert retry_after_s({}, text, now=NOW) is None


@given(value=st.text(max_size=50), text=st.text(max_size=200) | st.from_regex(r"try again in [0-9a-z. ]{0,80}"))
def test_whatever_stands_there_is_a_time_or_nothing(value: str, text: str) -> None:
    seconds = retry_after_s({"Retry-After": value}, text, now=NOW)
    assert seconds is None or 0 <= seconds < float("inf")
