"""What is said of watches in terminal and console."""

import pytest
from tests.support.watches import a_watch, at

from hankwatch.pages import watch_words as words
from hankwatch.watches.instance import Setting
from hankwatch.watches.signals import Told
from hankwatch.watches.watch import Outcome, Signal


def test_what_was_set_for_the_store_is_named_and_what_is_configured_is_not() -> None:
    settings = [
        Setting("interval", 90.0, 30.0, "root", at(0)),
        Setting("enabled", False, True, "root", at(0)),
        Setting("keep_terminal_h", 24.0, 24.0),
    ]
    assert words.set_here(settings) == "Set for this store: interval 90, enabled false"
    assert words.set_here(settings[2:]) is None


def test_a_reason_is_said_when_it_says_more_than_the_outcome() -> None:
    assert words.outcome(a_watch(last_outcome=Outcome.PENDING, last_reason="pending")) == "pending"
    assert words.outcome(a_watch(last_outcome=Outcome.PENDING, last_reason="not-there")) == "pending (not-there)"
    assert words.outcome(a_watch()) == "not checked yet"


@pytest.mark.parametrize(("watch_id", "address"), [("deploy", "/watches/deploy"), ("new", "/watches/new/")])
def test_each_watch_has_a_page_whatever_its_id(watch_id: str, address: str) -> None:
    assert words.address(watch_id) == address


def test_a_notice_is_one_line_without_signs_that_act() -> None:
    watch = a_watch(condition="a\x1b[31m\nb\u202e" + "c" * 500, last_outcome=Outcome.SATISFIED, last_evidence="x\ny")
    notice = words.notice(Told(1, Signal.MET, watch))
    assert notice["title"].startswith("Met: a bc")
    assert len(notice["title"]) < 200
    assert notice["text"] == f"{watch.id} · satisfied: x y"
