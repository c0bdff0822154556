"""Repeated calls: one sequence over and over, and one call among others (spec watchdog 5.4, cases/bugs A22)."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.watchdog import a_turn, call, calling, watch

from hankwatch.watchdog.signals import Nudge


def nudged(*rounds: Mapping[str, Any], **policy: Any) -> tuple[int, Mapping[str, Any]] | None:
    """The round of the first nudge about calls, and its detail."""
    policy = {"max_consecutive_errors": 0, "max_rounds_without_success": 0, **policy}
    for action in watch(a_turn(*rounds), **policy):
        assert isinstance(action, Nudge)
        assert (action.kind, action.trigger) == ("escalation", "call_repetition")
        return action.round, action.detail
    return None


def read(number: int, result: str = "x") -> dict[str, Any]:
    return call("read", "ok", result, path=f"file{number}")


LOOK = call("look", "ok", "the same", at="here")


def test_the_third_copy_of_a_call_arms() -> None:
    assert nudged(*[calling(LOOK)] * 4) == (3, {"count": 3, "tools": ["look"], "rule": "contiguous"})
    assert nudged(*[calling(LOOK)] * 4, repeat_call_threshold=4) == (
        4,
        {"count": 4, "tools": ["look"], "rule": "contiguous"},
    )
    assert nudged(*[calling(LOOK)] * 9, repeat_call_threshold=1) is None


@pytest.mark.parametrize("length", range(1, 8))
def test_a_sequence_up_to_the_longest_length_arms_at_its_third_copy(length: int) -> None:
    rounds = [calling(read(number % length)) for number in range(length * 3)]
    found = nudged(*rounds)
    if length <= 5:
        assert found == (length * 3, {"count": 3, "tools": ["read"] * length, "rule": "contiguous"})
    else:
        assert found is None


def test_a_batch_is_the_same_in_any_order_and_counts_equal_calls_once() -> None:
    one, other = [read(1), read(2), read(1)], [read(2), read(1), read(2)]
    found = nudged(calling(*one), calling(*other), calling(*one))
    assert found is not None
    assert (found[0], found[1]["count"]) == (3, 3)


def test_a_failing_call_repeats_whatever_it_says() -> None:
    fails = [calling(call("run", "error", f"lane {number} died")) for number in range(3)]
    assert nudged(*fails) is not None


def test_a_changed_answer_is_progress() -> None:
    assert nudged(*[calling(call("poll_build", "ok", f"{number} of 20")) for number in range(20)]) is None


def test_equal_answers_to_other_questions_are_no_loop() -> None:
    assert nudged(*[calling(call("attach", "ok", "true", file=f"f{number}")) for number in range(20)]) is None


def test_asking_again_for_what_was_denied_is_a_loop() -> None:
    assert nudged(*[calling(call("rm", "denied", "no"))] * 3) is not None


@pytest.mark.parametrize("outcome", ["infra", "cancelled"])
def test_outages_and_cancelled_calls_are_not_counted(outcome: str) -> None:
    lost = calling(call("fetch", outcome, "503"))
    assert nudged(*[lost] * 10) is None
    assert nudged(calling(LOOK), lost, calling(LOOK), lost, calling(LOOK)) is not None


@pytest.mark.parametrize("tool_class", ["poll", "wait"])
def test_polling_and_waiting_take_four_times_as_many(tool_class: Any) -> None:
    waits = calling(call("status", "ok", "queued", tool_class=tool_class))
    assert nudged(*[waits] * 11) is None
    assert nudged(*[waits] * 12) == (12, {"count": 12, "tools": ["status"], "rule": "contiguous"})


@pytest.mark.parametrize("tool_class", ["poll", "noop"])
def test_polls_and_notes_in_between_do_not_hide_a_loop(tool_class: Any) -> None:
    rounds = [
        calling(LOOK) if number % 2 else calling(call("note", "ok", str(number), tool_class=tool_class, n=number))
        for number in range(6)
    ]
    assert nudged(*rounds) == (6, {"count": 3, "tools": ["look"], "rule": "contiguous"})


def test_honest_polling_after_a_loop_is_not_nudged_again() -> None:
    polls = [calling(call("status", "ok", f"{number} %", tool_class="poll")) for number in range(12)]
    actions = watch(a_turn(*[calling(LOOK)] * 3, *polls))
    assert [action.round for action in actions] == [3]


def test_a_call_that_comes_back_among_others_arms_two_copies_later() -> None:
    rounds = [calling(LOOK) if number % 2 == 0 else calling(read(number)) for number in range(20)]
    assert nudged(*rounds) == (9, {"count": 5, "tools": ["look"], "rule": "scattered"})


def test_another_answer_meanwhile_is_progress() -> None:
    moving = [calling(LOOK), calling(call("count", "ok", "1"))], [calling(LOOK), calling(call("count", "ok", "2"))]
    assert nudged(*(one for _ in range(6) for pair in moving for one in pair), repeat_call_max_len=1) is None


def test_a_new_change_since_the_last_time_is_a_reason_to_look_again() -> None:
    edits = [calling(call("edit", "ok", "done", tool_class="mutate", n=number)) for number in range(8)]
    assert nudged(*(one for edit in edits for one in (edit, calling(LOOK)))) is None
    assert (
        nudged(*(one for edit in edits for one in (edit, calling(LOOK))), calling(read(1)), calling(LOOK)) is not None
    )


def test_looking_again_after_waiting_is_polling_whatever_looks() -> None:
    wait = calling(call("bash", "ok", "", command="sleep 30"))
    assert nudged(*[wait, calling(LOOK)] * 11) is None
    assert nudged(*[wait, calling(LOOK)] * 12) == (24, {"count": 12, "tools": ["bash", "look"], "rule": "contiguous"})
    naps = [calling(call("bash", "ok", "", command=f"sleep {number}")) for number in range(14)]
    among_others = [one for number, nap in enumerate(naps) for one in (nap, calling(read(number)), calling(LOOK))]
    assert nudged(*among_others[:-1], repeat_call_window=48) is None
    assert nudged(*among_others, repeat_call_window=48) == (42, {"count": 14, "tools": ["look"], "rule": "scattered"})


def test_only_the_window_counts_for_scattered_calls() -> None:
    rounds = [calling(LOOK) if number % 12 == 0 else calling(read(number)) for number in range(80)]
    assert nudged(*rounds) is None


def test_four_equal_calls_in_one_batch_are_no_loop_but_four_batches_are() -> None:
    assert nudged(calling(*[LOOK] * 4)) is None
    assert nudged(*[calling(*[LOOK] * 4)] * 3) is not None


def test_a_window_without_end_costs_only_what_is_in_it() -> None:
    huge = {"repeat_call_window": 10**12, "repeat_call_max_len": 10**12}
    rounds = [calling(read(number % 30)) for number in range(90)]
    found = nudged(*rounds, **huge)
    assert found == (90, {"count": 3, "tools": ["read"] * 30, "rule": "contiguous"})
