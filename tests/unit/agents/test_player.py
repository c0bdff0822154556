"""The gaps of a recording come from its stamps alone."""

import time
from collections.abc import Iterator

import pytest

from hankwatch.agents.player import gaps_ms, stamp_ms


@pytest.fixture
def _far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Pacific/Chatham")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_far_from_utc")
def test_a_stamp_without_a_zone_is_utc_wherever_this_runs() -> None:
    assert stamp_ms(b'{"timestamp":"1970-01-01T00:00:01.5"}') == 1_500
    assert stamp_ms(b'{"timestamp":"1970-01-01 00:00:01+00:00"}') == 1_000
    lines = [b'{"timestamp":"2026-01-01T00:00:00Z"}', b'{"timestamp":"2026-01-01T00:00:00.120"}']
    assert list(gaps_ms(lines, 250)) == [0, 120]


@pytest.mark.parametrize("stamp", ["soon", "", "[]", "1" + "0" * 400])
def test_a_stamp_that_is_none_is_no_stamp(stamp: str) -> None:
    value = stamp if stamp.isdigit() else f'"{stamp}"'
    assert stamp_ms(b'{"timestamp":%s}' % value.encode()) is None
