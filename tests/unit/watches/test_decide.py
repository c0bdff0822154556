"""What one check does to its watch (spec watches 2 and 3)."""

from dataclasses import replace

import pytest
from tests.support.watches import a_watch, at, impossible, pending, satisfied, unavailable

from hankwatch.watches.decide import Decision, decide, end, expire
from hankwatch.watches.watch import EndReason, ErrorKind, Kind, Observation, Signal, Status, Trigger, Watch


def played(watch: Watch, *checks: Observation) -> tuple[Watch, list[list[str]]]:
    """The watch after these checks, one every 30 s, and the signals of each."""
    told = list[list[str]]()
    for number, check in enumerate(checks, 1):
        decision = decide(watch, check, at(30 * number))
        watch = decision.watch
        told.append([raised.signal.value for raised in decision.raised])
        if watch.status is Status.ENDED:
            break
    return watch, told


def signals(decision: Decision) -> list[Signal]:
    return [raised.signal for raised in decision.raised]


def test_a_tripwire_ends_satisfied_with_one_fire() -> None:
    watch, told = played(a_watch(), pending(), satisfied(), satisfied())

    assert told == [[], ["met"]]
    assert (watch.status, watch.end_reason, watch.fire_count) == (Status.ENDED, EndReason.SATISFIED, 1)
    assert watch.next_check_at is None


def test_a_repeating_watch_fires_on_rising_edges_only() -> None:
    watch, told = played(
        a_watch(repeat=True), satisfied(), satisfied(), pending(), satisfied(), pending(), pending(), satisfied()
    )

    assert told == [["met"], [], [], ["met"], [], [], ["met"]]
    assert (watch.status, watch.fire_count) == (Status.ACTIVE, 3)


def test_the_first_good_check_of_a_change_watch_only_sets_the_baseline() -> None:
    watch = a_watch(trigger=Trigger.CHANGE, repeat=True)

    _, told = played(watch, unavailable(), pending(1), satisfied(1), pending(2), pending(2), pending(1))

    assert told == [[], [], [], ["changed"], [], ["changed"]]


def test_a_change_watch_that_does_not_repeat_ends_at_the_first_move() -> None:
    watch, told = played(a_watch(trigger=Trigger.CHANGE), pending(1), pending(2))

    assert told == [[], ["changed"]]
    assert watch.end_reason is EndReason.CHANGED


def test_impossible_ends_at_once_and_never_looks_like_success() -> None:
    watch, told = played(a_watch(repeat=True), pending(), impossible())

    assert told == [[], ["impossible"]]
    assert (watch.end_reason, watch.fire_count) == (EndReason.IMPOSSIBLE, 0)


def test_unavailable_freezes_edge_baseline_and_streak() -> None:
    watch, _ = played(a_watch(repeat=True, stall_after=5), satisfied(1), satisfied(1), satisfied(1))

    after, told = played(watch, *[unavailable()] * 4)

    assert told == [[], [], [], []]
    assert replace(after.memory, consecutive_errors=0) == watch.memory
    assert played(after, satisfied(1))[1] == [[]]  # no rising edge: it was up before and is up still


def test_broken_is_told_once_after_five_and_recovered_when_it_heals() -> None:
    _, told = played(a_watch(), *[unavailable()] * 7, pending(), *[unavailable()] * 5)

    assert told == [[], [], [], [], ["broken"], [], [], ["recovered"], [], [], [], [], ["broken"]]


def test_checks_without_a_claim_are_retried_ever_later_up_to_a_bound() -> None:
    watch, waits = a_watch(expires_s=None), list[float]()

    for _ in range(8):
        watch = decide(watch, unavailable(), at(0)).watch
        assert watch.next_check_at is not None
        waits.append((watch.next_check_at - at(0)).total_seconds())

    assert waits == [30, 60, 120, 240, 480, 600, 600, 600]


def test_a_stall_is_told_once_per_episode_and_a_fire_ends_it() -> None:
    watch = a_watch(trigger=Trigger.CHANGE, repeat=True, stall_after=2)

    _, told = played(watch, *[pending(1)] * 5, pending(2), *[pending(2)] * 3)

    assert told == [[], [], ["stalled"], [], [], ["changed"], [], ["stalled"], []]


def test_flapping_is_told_once_per_episode_and_again_after_it_has_settled() -> None:
    watch = a_watch(trigger=Trigger.CHANGE, repeat=True, expires_s=None)
    moving = [pending(value) for value in range(8)]

    _, told = played(watch, *moving, *[pending(7)] * 5, *[pending(100 + value) for value in range(6)])

    flapping = [number for number, signals in enumerate(told) if "flapping" in signals]
    assert flapping == [5, 17]


def test_a_currently_true_repeating_watch_made_one_shot_ends_satisfied_at_its_next_check() -> None:
    watch, _ = played(a_watch(repeat=True), satisfied())

    once, told = played(replace(watch, repeat=False), satisfied())

    assert told == [["met"]]
    assert once.end_reason is EndReason.SATISFIED


def test_true_exactly_at_the_deadline_still_notifies() -> None:
    decision = decide(a_watch(expires_s=60), satisfied(), at(60))

    assert signals(decision) == [Signal.MET]
    assert decision.watch.end_reason is EndReason.SATISFIED


def test_a_final_check_that_is_not_satisfied_expires_the_watch() -> None:
    for last in (pending(), unavailable()):
        decision = decide(a_watch(expires_s=60), last, at(60))
        assert signals(decision) == [Signal.EXPIRED]
        assert decision.watch.end_reason is EndReason.EXPIRED


def test_a_repeating_watch_fires_at_its_deadline_and_has_expired() -> None:
    decision = decide(a_watch(repeat=True, expires_s=60), satisfied(), at(61))

    assert signals(decision) == [Signal.MET, Signal.EXPIRED]
    assert decision.watch.end_reason is EndReason.EXPIRED


def test_a_monitor_never_fires_at_its_deadline() -> None:
    decision = decide(a_watch(kind=Kind.MONITOR, expires_s=60), satisfied(), at(60))

    assert signals(decision) == [Signal.EXPIRED]
    assert decision.watch.fire_count == 0


def test_a_changed_check_ends_a_monitor_and_holds_the_others() -> None:
    ended = decide(a_watch(kind=Kind.MONITOR), unavailable(ErrorKind.CHECK_CHANGED), at(30))
    held = decide(a_watch(kind=Kind.AGENT_WATCH), unavailable(ErrorKind.CHECK_CHANGED), at(30))

    assert (ended.watch.end_reason, signals(ended)) == (EndReason.CHECK_CHANGED, [Signal.CANCELLED])
    assert (held.watch.status, signals(held)) == (Status.ACTIVE, [])


@pytest.mark.parametrize(
    ("reason", "signal"),
    [
        (EndReason.CANCELLED, Signal.CANCELLED),
        (EndReason.ACCESS_REVOKED, Signal.CANCELLED),
        (EndReason.REJECTED, Signal.CANCELLED),
        (EndReason.EXPIRED, Signal.EXPIRED),
    ],
)
def test_every_ending_is_told_with_its_reason(reason: EndReason, signal: Signal) -> None:
    decision = end(a_watch(), reason, at(5))

    (raised,) = decision.raised
    assert (raised.signal, raised.reason, raised.fire) == (signal, reason.value, None)
    assert decision.watch.finished_at == at(5)


def test_expiry_without_a_check_counts_no_check() -> None:
    assert expire(a_watch(), at(3_600)).watch.check_count == 0


def test_jitter_only_lengthens_and_by_five_percent_at_most() -> None:
    soonest = decide(a_watch(interval_s=100), pending(), at(0), jitter=0.0).watch.next_check_at
    latest = decide(a_watch(interval_s=100), pending(), at(0), jitter=1.0).watch.next_check_at

    assert (soonest, latest) == (at(100), at(105))
