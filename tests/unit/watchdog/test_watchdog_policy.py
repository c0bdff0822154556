"""Defaults and validation of a watchdog policy (spec watchdog 6.2)."""

from typing import Any

import pytest
from pydantic import ValidationError

from hankwatch.watchdog.policy import BREAK_LOOP_TEXT, NUDGE_TEXT, WatchdogPolicy

DEFAULTS = {
    "max_consecutive_errors": 5,
    "max_rounds_without_success": 6,
    "refractory_rounds": 3,
    "refractory_seconds": 20,
    "repeat_sentence_window": 64,
    "repeat_sentence_threshold": 4,
    "repeat_sentence_threshold_loose": 6,
    "min_sentence_chars": 24,
    "min_armed_sentences": 8,
    "repeat_call_window": 32,
    "repeat_call_threshold": 3,
    "repeat_call_max_len": 5,
    "max_think_nudges": 2,
    "interrupt_on_cap": True,
    "nudge_text": NUDGE_TEXT,
    "break_loop_text": BREAK_LOOP_TEXT,
}
COUNTS = [name for name, value in DEFAULTS.items() if type(value) is int and name != "refractory_seconds"]


def faults(**fields: Any) -> dict[str, str]:
    """Field -> what is said of it."""
    with pytest.raises(ValidationError) as caught:
        WatchdogPolicy.model_validate(fields)
    return {str(error["loc"][0]): error["msg"] for error in caught.value.errors()}


def test_what_is_left_out_has_the_default() -> None:
    assert WatchdogPolicy().model_dump() == {**DEFAULTS, "mode": "act", "tool_classes": {}}


def test_an_unknown_key_is_refused_by_its_name() -> None:
    assert set(faults(max_consecutive_error=1, refractory=2)) == {"max_consecutive_error", "refractory"}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None])
def test_a_count_is_a_whole_number_from_zero(name: str, value: Any) -> None:
    assert name in faults(**{name: value})


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan"), "1", None])
def test_seconds_are_finite_and_not_negative(value: Any) -> None:
    assert set(faults(refractory_seconds=value)) == {"refractory_seconds"}
    assert WatchdogPolicy(refractory_seconds=0.5).refractory_seconds == 0.5
    assert WatchdogPolicy(refractory_seconds=7).refractory_seconds == 7


@pytest.mark.parametrize("name", ["nudge_text", "break_loop_text"])
@pytest.mark.parametrize("value", ["", " \n\t"])
def test_a_blank_text_is_an_error(name: str, value: str) -> None:
    assert set(faults(**{name: value})) == {name}


def test_a_text_is_kept_byte_for_byte() -> None:
    assert WatchdogPolicy(nudge_text="  {x} %s\n").nudge_text == "  {x} %s\n"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"repeat_sentence_threshold": 7}, "repeat_sentence_threshold_loose"),
        ({"repeat_sentence_threshold_loose": 3}, "repeat_sentence_threshold_loose"),
        ({"repeat_sentence_window": 5}, "repeat_sentence_window"),
        ({"repeat_sentence_window": 3, "repeat_sentence_threshold_loose": 0}, "repeat_sentence_window"),
        ({"min_sentence_chars": 801}, "min_sentence_chars"),
        ({"repeat_call_window": 2}, "repeat_call_window"),
        ({"repeat_call_max_len": 0}, "repeat_call_max_len"),
    ],
)
def test_a_rule_that_could_never_apply_is_an_error_of_its_field(fields: dict[str, int], named: str) -> None:
    found = faults(**fields)
    assert set(found) == {named}
    assert named in found[named]


def test_all_dead_rules_are_told_at_once() -> None:
    assert set(faults(repeat_sentence_threshold=7, repeat_call_window=1)) == {
        "repeat_sentence_threshold_loose",
        "repeat_call_window",
    }


@pytest.mark.parametrize("off", [0, 1])
def test_a_tier_that_is_off_asks_nothing_of_the_others(off: int) -> None:
    WatchdogPolicy(repeat_sentence_threshold=off, repeat_sentence_threshold_loose=2)
    WatchdogPolicy(repeat_sentence_threshold=9, repeat_sentence_threshold_loose=off)
    WatchdogPolicy(repeat_sentence_threshold=off, repeat_sentence_threshold_loose=off, repeat_sentence_window=0)
    WatchdogPolicy(repeat_call_threshold=off, repeat_call_window=0, repeat_call_max_len=0)


@pytest.mark.parametrize(("window", "longest"), [(32, 5), (14, 4), (8, 2), (3, 1)])
def test_the_longest_sequence_fits_the_window_as_often_as_it_must(window: int, longest: int) -> None:
    assert WatchdogPolicy(repeat_call_window=window).call_lengths == longest
