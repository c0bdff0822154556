"""Escalation, breaking, and how they hold each other back (spec watchdog 6.1-6.3)."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.watchdog import Feed, a_turn, as_expected, call, calling, feeds_of, run, watch

from hankwatch.watchdog.policy import BREAK_LOOP_TEXT, NUDGE_TEXT
from hankwatch.watchdog.signals import (
    Action,
    Call,
    Delta,
    Interrupt,
    Nudge,
    Result,
    Retry,
    RoundEnd,
    RoundStart,
    TurnStart,
)

LOOP = {"think": "The lock is taken before the queue is read. " * 12}
OTHER_LOOP = {"text": "The handle leaks when the reconnect path is taken. " * 12}
OK = calling(call("read", "ok", "x", path="a"))
NEW_TEXT = "Then the part called {} has to be read from the start."


def fail(number: int) -> dict[str, Any]:
    return calling(call("bash", "error", "boom", command=f"cmd{number}"))


def news(number: int) -> dict[str, Any]:
    return calling(call("read", "ok", f"part {number}", path=f"p{number}"))


def acts(*rounds: Mapping[str, Any], **policy: Any) -> list[tuple[int, str]]:
    """(round, kind or ``interrupt``) of every action in one turn."""
    return [short(action) for action in watch(a_turn(*rounds), **policy)]


def short(action: Action) -> tuple[int, str]:
    return action.round, as_expected(action).get("kind", "interrupt")


def triggers(*rounds: Mapping[str, Any], **policy: Any) -> list[tuple[int, str]]:
    return [(action.round, action.trigger) for action in watch(a_turn(*rounds), **policy)]


class TestErrorStreak:
    def test_five_failures_in_a_row_arm(self) -> None:
        (nudge,) = watch(a_turn(*map(fail, range(5))))
        assert (nudge.round, nudge.trigger, dict(nudge.detail)) == (5, "error_streak", {"count": 5, "tools": ["bash"]})

    @pytest.mark.parametrize("outcome", ["denied", "cancelled", "infra"])
    def test_what_is_no_failure_neither_adds_nor_resets(self, outcome: str) -> None:
        between = calling(call("rm", outcome, "no", n=1))
        rounds = [*map(fail, range(4)), between, fail(4)]
        assert triggers(*rounds, max_rounds_without_success=0) == [(6, "error_streak")]

    def test_a_success_resets_and_a_note_does_not(self) -> None:
        note = calling(call("note", "ok", "", tool_class="noop"))
        assert triggers(*map(fail, range(4)), news(1), *map(fail, range(4))) == []
        assert triggers(*map(fail, range(4)), note, fail(4), max_rounds_without_success=0) == [(6, "error_streak")]

    def test_one_batch_of_guesses_has_not_repeated_anything(self) -> None:
        batch = calling(*(call("read", "error", "no such file", path=f"p{number}") for number in range(6)))
        assert triggers(batch) == []
        assert triggers(batch, fail(1)) == [(2, "error_streak")]

    def test_zero_is_off(self) -> None:
        assert triggers(*map(fail, range(20)), max_consecutive_errors=0, max_rounds_without_success=0) == []

    def test_the_last_tools_are_named_never_their_arguments(self) -> None:
        rounds = [calling(call(f"tool{number}", "error", "secret", key="secret")) for number in range(7)]
        (nudge,) = watch(a_turn(*rounds), max_consecutive_errors=7, max_rounds_without_success=0)
        assert nudge.detail["tools"] == [f"tool{number}" for number in range(2, 7)]
        assert "secret" not in repr(nudge)


class TestRoundsWithoutSuccess:
    @pytest.mark.parametrize("told", [{}, {"text": "Still planning."}, calling(call("rm", "denied", "no"))])
    def test_the_sixth_round_without_success_arms(self, told: Mapping[str, Any]) -> None:
        assert triggers(*[told] * 6, repeat_call_threshold=0) == [(6, "no_progress")]

    def test_outages_leave_it_unchanged(self) -> None:
        outage = calling(call("fetch", "infra", "503"))
        assert triggers(*[{}] * 5, *[outage] * 5) == []
        assert triggers(*[{}] * 5, *[outage] * 5, {}) == [(11, "no_progress")]

    def test_a_success_resets_and_a_note_does_not(self) -> None:
        note = calling(call("note", "ok", "", tool_class="noop"))
        assert triggers(*[{}] * 5, OK, *[{}] * 5) == []
        assert triggers(*[{}] * 5, note) == [(6, "no_progress")]

    def test_a_call_without_an_answer_is_no_success(self) -> None:
        feeds: list[Feed] = [(TurnStart(), 0.0)]
        for number in range(6):
            feeds += [(RoundStart(), 0.0), (Call(f"c{number}", "read", {"n": number}), 0.0), (RoundEnd(), 0.0)]
        assert [action.trigger for action in run(feeds)] == ["no_progress"]


class TestEscalation:
    def test_the_example_of_the_specification(self) -> None:
        slow, fast = [{**OK, "dt": 10.0}] * 13, [{**OK, "dt": 2.0}] * 13
        assert [number for number, _ in acts(*slow)] == [3, 6, 9, 12]
        assert [number for number, _ in acts(*fast)] == [3, 13]

    def test_a_nudge_says_what_the_policy_says(self) -> None:
        (nudge,) = watch(a_turn(*[OK] * 3))
        assert nudge == Nudge(
            "escalation", NUDGE_TEXT, 3, "call_repetition", 1, {"count": 3, "tools": ["read"], "rule": "contiguous"}
        )
        (nudge,) = watch(a_turn(*[OK] * 3), nudge_text=" {x} ")
        assert isinstance(nudge, Nudge)
        assert nudge.text == " {x} "

    def test_without_refractory_every_round_is_nudged(self) -> None:
        assert len(acts(*[{**OK, "dt": 0.0}] * 10, refractory_rounds=0, refractory_seconds=0)) == 8

    def test_seconds_may_be_fractions(self) -> None:
        rounds = [{**OK, "dt": 0.25}] * 9
        assert [number for number, _ in acts(*rounds, refractory_rounds=0, refractory_seconds=0.6)] == [3, 6, 9]

    def test_one_nudge_names_the_first_of_the_armed_triggers(self) -> None:
        same = calling(call("bash", "error", "boom"))
        limits = {"refractory_rounds": 0, "refractory_seconds": 0}
        assert triggers(*[same] * 6, repeat_call_threshold=6, **limits) == [
            (5, "error_streak"),
            (6, "call_repetition"),
        ]
        assert triggers(*map(fail, range(6)), max_consecutive_errors=6, **limits) == [(6, "error_streak")]

    def test_what_has_been_told_is_not_told_again_without_news(self) -> None:
        outage = calling(call("fetch", "infra", "503"))
        limits = {"refractory_rounds": 1, "refractory_seconds": 0}
        assert acts(*[OK] * 3, *[outage] * 5, **limits) == [(3, "escalation")]
        assert acts(*map(fail, range(5)), *[outage] * 5, **limits) == [(5, "escalation")]

    def test_news_that_came_while_held_back_is_told_later(self) -> None:
        outage = calling(call("fetch", "infra", "503"))
        assert acts(*[OK] * 4, outage, outage) == [(3, "escalation"), (6, "escalation")]

    def test_a_recovery_disarms(self) -> None:
        assert acts(*[OK] * 4, *map(news, range(5))) == [(3, "escalation")]


class TestBreaking:
    def test_a_repeated_sentence_stops_the_stream_at_once(self) -> None:
        (nudge,) = watch(a_turn(LOOP))
        assert nudge == Nudge(
            "break_loop", BREAK_LOOP_TEXT, 1, "sentence_strict", 1, {"count": 8, "channel": "thinking"}
        )

    def test_what_follows_in_an_aborted_round_is_ignored(self) -> None:
        told = calling(*(call("bash", "error", str(n), n=n) for n in range(9)), **LOOP)
        assert acts(told, *map(fail, range(4))) == [(1, "break_loop")]

    def test_at_the_cap_the_turn_is_interrupted_once(self) -> None:
        assert acts(*[LOOP] * 6, *[OK] * 5) == [(1, "break_loop"), (2, "break_loop"), (3, "interrupt")]

    def test_a_cap_of_zero_interrupts_at_the_first_firing(self) -> None:
        (only,) = watch(a_turn(*[LOOP] * 3), max_think_nudges=0)
        assert only == Interrupt(1, "sentence_strict", {"count": 8, "channel": "thinking"})

    def test_without_interrupt_the_cap_is_silent_and_the_other_triggers_live_on(self) -> None:
        assert acts(*[LOOP] * 5, *[OK] * 3, interrupt_on_cap=False, max_rounds_without_success=0) == [
            (1, "break_loop"),
            (2, "break_loop"),
            (8, "escalation"),
        ]
        assert acts(LOOP, max_think_nudges=0, interrupt_on_cap=False) == []

    def test_a_round_at_the_silent_cap_counts(self) -> None:
        assert triggers(*[LOOP] * 6, interrupt_on_cap=False, max_think_nudges=0) == [(6, "no_progress")]

    def test_it_holds_back_an_escalation_but_never_another_break(self) -> None:
        assert acts(OK, OK, LOOP, OTHER_LOOP, OK, OK, OK, refractory_seconds=0) == [
            (3, "break_loop"),
            (4, "break_loop"),
            (7, "escalation"),
        ]

    def test_an_aborted_round_is_not_one_of_the_refractory_rounds(self) -> None:
        assert acts(OK, OK, OK, LOOP, OK, OK, OK, OK, refractory_seconds=0) == [
            (3, "escalation"),
            (4, "break_loop"),
            (7, "escalation"),
        ]

    def test_an_aborted_round_counts_for_nothing(self) -> None:
        assert triggers(*[{}] * 3, LOOP, *[{}] * 3, refractory_rounds=0, refractory_seconds=0) == [
            (4, "sentence_strict"),
            (7, "no_progress"),
        ]

    def test_a_tool_call_ends_the_sentence_before_it(self) -> None:
        said = Delta("text", "The lock is taken before the queue is read")
        feeds: list[Feed] = [
            (signal, 0.0) for number in range(8) for signal in (said, Call(str(number), "read", {"n": number}))
        ]
        assert run(feeds[:-1]) == []
        assert [short(action) for action in run(feeds)] == [(1, "break_loop")]

    def test_the_end_of_a_round_can_be_the_end_of_the_sentence_that_fires(self) -> None:
        assert acts(*[{"text": "The lock is taken before the queue is read"}] * 8, max_rounds_without_success=0) == [
            (8, "break_loop")
        ]

    def test_each_channel_counts_for_itself(self) -> None:
        both = {"think": "The lock is taken before the queue is read. " * 7}
        assert acts({**both, "text": both["think"]}) == []

    def test_a_new_success_clears_what_was_said(self) -> None:
        said = {"text": "Now the tests of the parser are run once more."}
        assert acts(*({**news(number), **said} for number in range(20))) == []
        assert acts(*({**OK, **said} for number in range(9)), repeat_call_threshold=0) == [(9, "break_loop")]


class TestTurns:
    def test_a_new_turn_clears_counters_refractory_and_cap(self) -> None:
        turns = [
            {"rounds": [{"dt": 1.0, **told} for told in (*[LOOP] * 3, *[OK] * 3)]},
            {"rounds": [{"dt": 1.0, **OK}] * 3},
        ]
        turns.append({"rounds": [{"dt": 1.0, **LOOP}]})
        assert [short(action) for action in watch({"turns": turns})] == [
            (1, "break_loop"),
            (2, "break_loop"),
            (3, "interrupt"),
            (9, "escalation"),
            (10, "break_loop"),
        ]

    def test_a_turn_that_starts_in_an_open_round_drops_it(self) -> None:
        feeds: list[Feed] = [(TurnStart(), 0.0), (Delta("text", LOOP["think"][:300]), 0.0), (TurnStart(), 0.0)]
        assert run([*feeds, (Delta("text", LOOP["think"][:300]), 0.0)]) == []


class TestObserving:
    def test_an_action_is_told_and_the_round_counts(self) -> None:
        told = {**calling(call("bash", "error", "boom")), **LOOP}
        assert acts(told, *map(fail, range(4)), mode="observe", refractory_rounds=0, refractory_seconds=0) == [
            (1, "break_loop"),
            (5, "escalation"),
        ]

    def test_one_round_is_broken_once(self) -> None:
        assert acts({"think": [LOOP["think"]] * 10}, mode="observe") == [(1, "break_loop")]

    def test_what_was_told_of_an_attempt_stays_told_when_it_is_undone(self) -> None:
        said = "The lock is taken before the queue is read. "
        feeds: list[Feed] = [(Delta("text", said * 7), 0.0), (RoundEnd(), 0.0), (Delta("text", said * 5), 0.0)]
        feeds += [(Retry(), 0.0), (Delta("text", said * 7), 0.0)]
        assert [short(action) for action in run(feeds, mode="observe")] == [(2, "break_loop")]


class TestStream:
    def test_a_host_may_leave_out_the_bounds_of_rounds(self) -> None:
        feeds: list[Feed] = []
        for number in range(3):
            feeds += [
                (RoundStart(), 10.0 * number),
                (Call(str(number), "read", {}), 0.0),
                (Result(str(number), "ok", "x"), 0.0),
            ]
        assert [action.round for action in run([*feeds, (RoundStart(), 30.0)])] == [3]
        assert len(run([(Delta("text", LOOP["think"]), 0.0)])) == 1
        assert run([(RoundEnd(), 0.0), (Retry(), 0.0), (Result("x", "ok"), 0.0)]) == []

    def test_an_answer_counts_once_and_only_in_its_round(self) -> None:
        feeds: list[Feed] = [(TurnStart(), 0.0)]
        for number in range(5):
            feeds += [(RoundStart(), 0.0), (Call(f"c{number}", "bash", {"n": number}), 0.0)]
            feeds += [(Result(f"c{number}", "ok", "x"), 0.0), (Result(f"c{number}", "error", "x"), 0.0)]
            feeds += [(Result(f"c{number - 1}", "error", "late"), 0.0), (RoundEnd(), 0.0)]
        assert run(feeds) == []

    def test_a_retry_drops_the_calls_of_the_attempt(self) -> None:
        voided = {"voided": calling(call("bash", "error", "x"))}
        assert acts(*[{**news(number), **voided} for number in range(9)]) == []

    def test_the_feed_of_a_case_is_what_its_notes_say(self) -> None:
        names = [type(signal).__name__ for signal, _ in feeds_of(a_turn({**OK, "text": ["a", "b"], "voided": LOOP}))]
        assert names == ["TurnStart", "RoundStart", "Delta", "Retry", "Delta", "Delta", "Call", "Result", "RoundEnd"]
