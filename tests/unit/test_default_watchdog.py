"""The default policy that hanks may adopt (spec watchdog 0)."""

from collections.abc import Iterator

import pytest

from hankwatch.agent import WatchdogPolicy, default_watchdog, set_default_watchdog


@pytest.fixture(autouse=True)
def none_set() -> Iterator[None]:
    set_default_watchdog(None)
    yield
    set_default_watchdog(None)


def test_there_is_none_until_one_is_set() -> None:
    assert default_watchdog() is None
    set_default_watchdog(WatchdogPolicy())
    set_default_watchdog(None)
    assert default_watchdog() is None


def test_it_is_what_was_set() -> None:
    set_default_watchdog(WatchdogPolicy(max_think_nudges=0, tool_classes={"Bash": "poll"}))
    assert default_watchdog() == WatchdogPolicy(max_think_nudges=0, tool_classes={"Bash": "poll"})


def test_each_copy_is_fresh_and_the_stored_one_stays() -> None:
    mine = WatchdogPolicy(tool_classes={"Bash": "poll"})
    set_default_watchdog(mine)
    mine.tool_classes["Bash"] = "wait"
    one, other = default_watchdog(), default_watchdog()
    assert one is not None
    assert one is not other
    one.tool_classes.clear()
    assert default_watchdog() == other == WatchdogPolicy(tool_classes={"Bash": "poll"})
