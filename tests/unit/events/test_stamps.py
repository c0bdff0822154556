import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hankwatch.core.clock import EARLIEST_MS, LATEST_MS
from hankwatch.events.envelope import format_stamp
from hankwatch.events.stamps import is_canonical, parse_stamp


@pytest.fixture
def far_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("stamp", "meaning"),
    [
        ("2026-11-30T12:00:00.123Z", "2026-11-30T12:00:00.123Z"),
        ("2026-11-30T12:00:00Z", "2026-11-30T12:00:00.000Z"),
        ("2026-11-30t12:00:00z", "2026-11-30T12:00:00.000Z"),
        ("2026-11-30T12:00:00", "2026-11-30T12:00:00.000Z"),
        ("2026-11-30 12:00:00", "2026-11-30T12:00:00.000Z"),
        ("2026-11-30 12:00:00 UTC", "2026-11-30T12:00:00.000Z"),
        ("2026-11-30T12:00:00+05:30", "2026-11-30T06:30:00.000Z"),
        ("2026-11-30 12:00:00 -0800", "2026-11-30T20:00:00.000Z"),
        ("2026-11-30T23:59:60Z", "2026-12-01T00:00:00.000Z"),
        ("2026-11-30T23:59:60.250Z", "2026-12-01T00:00:00.250Z"),
        ("2026-11-30T12:00:00.123456789Z", "2026-11-30T12:00:00.123Z"),
        ("2026-11-30T12:00:00.5", "2026-11-30T12:00:00.500Z"),
        ("2026-11-30", "2026-11-30T00:00:00.000Z"),
        (1796040000, "2026-11-30T12:00:00.000Z"),
        (1796040000.25, "2026-11-30T12:00:00.250Z"),
        (1796040000123, "2026-11-30T12:00:00.123Z"),
        (1796040000123456, "2026-11-30T12:00:00.123Z"),
        (1796040000123456789, "2026-11-30T12:00:00.123Z"),
        ("1796040000", "2026-11-30T12:00:00.000Z"),
        ("1796040000.25", "2026-11-30T12:00:00.250Z"),
        ("1796040000123", "2026-11-30T12:00:00.123Z"),
    ],
)
def test_a_stamp_of_any_spelling_is_its_instant_in_utc(stamp: Any, meaning: str, far_zone: None) -> None:
    at_ms = parse_stamp(stamp)
    assert at_ms is not None
    assert format_stamp(at_ms) == meaning


@pytest.mark.parametrize(
    "stamp",
    [
        "",
        "soon",
        "12:00",
        "2026-13-01T00:00:00Z",
        "2026-11-30T12:00:00+99:00",
        "２０２６-11-30T12:00:00Z",
        "\ud800",
        "9" * 5000,
        None,
        True,
        [],
        {},
        math.nan,
        math.inf,
        10**400,
        -(10**400),
        10**24,
        1e300,
    ],
    ids=repr,
)
def test_what_is_no_instant_is_none_and_never_an_error(stamp: Any) -> None:
    assert parse_stamp(stamp) is None


@pytest.mark.parametrize(
    ("stamp", "instant_ms"),
    [
        ("9999-01-01T00:00:00.000Z", LATEST_MS),
        ("9999-12-31T23:59:59.999Z", LATEST_MS),
        ("9999-12-31T23:59:60Z", LATEST_MS),
        ("9999-12-31T23:59:59-12:00", LATEST_MS),
        (LATEST_MS * 1_000_000 + 10**15, LATEST_MS),
        ("1969-12-31T23:59:59.999Z", EARLIEST_MS),
        ("0001-01-01T00:00:00Z", EARLIEST_MS),
        ("0001-01-01T00:00:00+05:30", EARLIEST_MS),
        (-1, EARLIEST_MS),
        (-1e18, EARLIEST_MS),
    ],
)
def test_an_instant_beyond_what_stream_time_takes_is_its_nearest_end(stamp: Any, instant_ms: int) -> None:
    assert parse_stamp(stamp) == instant_ms


@pytest.mark.parametrize("stamp", ["2026-11-30T12:00:00Z", "2026-W48-1T12:00:00.123Z", "2026-11-30T12:00:60.123Z", 5])
def test_only_our_own_spelling_is_canonical(stamp: Any) -> None:
    assert is_canonical("2026-11-30T12:00:00.123Z")
    assert not is_canonical(stamp)
