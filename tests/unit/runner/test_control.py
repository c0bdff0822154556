"""Requests to a live run: the first reason stands, asking twice changes nothing."""

import pytest

from hankwatch.runner.control import CodonStop, Control, StopReason


def test_the_first_stop_reason_stands_and_is_told_once() -> None:
    stop, told = CodonStop(), []
    stop.on_stop(lambda: told.append(stop.reason))
    stop.request(StopReason.SKIP)
    stop.request(StopReason.FORCE_STOP)
    assert told == [StopReason.SKIP]


def test_whoever_listens_late_is_told_at_once() -> None:
    stop, told = CodonStop(), []
    stop.request(StopReason.IDLE)
    stop.on_stop(lambda: told.append(stop.reason))
    assert told == [StopReason.IDLE]


def test_a_stopping_run_stops_the_codon_that_begins() -> None:
    control, codon = Control(), CodonStop()
    control.stop(now_s=5.0, budget_s=2.0)
    control.stop(now_s=6.0, budget_s=99.0)
    control.enter(codon)
    assert codon.reason is StopReason.FORCE_STOP
    assert control.stop_by_s == 7.0


@pytest.mark.parametrize(("budget_s", "share_s"), [(600.0, 3.0), (10.0, 3.0), (5.0, 1.5), (3.0, 0.9)])
def test_a_small_stop_budget_leaves_room_for_everything_in_it(budget_s: float, share_s: float) -> None:
    control, codon = Control(), CodonStop()
    control.enter(codon)
    control.stop(now_s=0.0, budget_s=budget_s)
    assert codon.grace_s == control.grace_s == control.reserve_s == pytest.approx(share_s)


def test_skip_reaches_only_a_running_codon() -> None:
    control, codon = Control(), CodonStop()
    assert control.skip() is False
    control.enter(codon)
    assert control.skip() is True
    assert codon.reason is StopReason.SKIP
    control.leave()
    assert control.skip() is False
