"""What an attempt comes to: a stop goes before whatever the agent said."""

import json
from typing import get_args

import pytest

from hankwatch.agents.outcome import Outcome
from hankwatch.events.shapes import BudgetExceeded, ExitError, ExitKilled, ExitSuccess, FailureReason
from hankwatch.hank.budget import OnExceeded
from hankwatch.processes.child import Exit
from hankwatch.runner.budget import Exceeded
from hankwatch.runner.control import StopReason
from hankwatch.runner.verdict import FinalStatus, Verdict, decide, from_json, not_begun, not_run, nothing_left

SUCCESS = Outcome("success", None, ("result success", "exit code 0"))
REASON = FailureReason(type="api-error", retriable=True, message="529 overloaded")
FAILURE = Outcome("failed", REASON, ("no result",))


def test_without_a_stop_the_agents_outcome_decides() -> None:
    assert decide(SUCCESS, Exit(code=0), None).exit_status == ExitSuccess()
    failed = decide(FAILURE, Exit(code=2), None)
    assert (failed.status, failed.exit_status, failed.reason) == ("failed", ExitError(code=2), REASON)


def test_a_doubtful_success_is_no_success() -> None:
    suspect = Outcome("suspect", REASON, ())
    assert decide(suspect, Exit(code=0), None).status == "failed"


def test_a_failure_that_exits_with_0_does_not_look_like_success() -> None:
    assert decide(FAILURE, Exit(code=0), None).exit_status == ExitError(code=-1)


STATUS_OF_STOP: dict[StopReason, FinalStatus] = {
    StopReason.FORCE_STOP: "failed",
    StopReason.SKIP: "skipped",
    StopReason.IDLE: "failed",
    StopReason.BUDGET: "failed",
    StopReason.WATCHDOG: "failed",
}


@pytest.mark.parametrize("stop", StopReason)
def test_a_stop_goes_before_the_agents_success(stop: StopReason) -> None:
    verdict = decide(SUCCESS, Exit(signal=15), stop, idle_s=3)
    assert verdict.status == STATUS_OF_STOP[stop]
    assert verdict.exit_status == ExitKilled(signal="SIGTERM")
    assert verdict.facts == SUCCESS.facts


@pytest.mark.parametrize("stop", [StopReason.FORCE_STOP, StopReason.SKIP])
def test_a_stop_before_the_agent_leaves_it_unstarted(stop: StopReason) -> None:
    verdict = not_begun(stop)
    assert (verdict.status, verdict.exit_status) == (STATUS_OF_STOP[stop], ExitError(code=-1))


def test_a_reason_is_given_exactly_with_a_failure() -> None:
    verdicts = [decide(SUCCESS, Exit(code=0), stop, idle_s=1) for stop in (None, *StopReason)]
    verdicts += [not_begun(StopReason.SKIP), not_run(REASON)]
    assert all((verdict.reason is not None) == (verdict.status == "failed") for verdict in verdicts)
    assert {verdict.status for verdict in verdicts} == set(get_args(FinalStatus))


def test_a_signal_without_a_name_keeps_its_number() -> None:
    assert decide(FAILURE, Exit(signal=200), None).exit_status == ExitKilled(signal="SIG200")


@pytest.mark.parametrize("ending", get_args(OnExceeded))
def test_a_reached_limit_ends_as_its_budget_says(ending: OnExceeded) -> None:
    exceeded = Exceeded(BudgetExceeded(currency="cost", limit=1, used=1.5), ending)
    verdict = decide(SUCCESS, Exit(signal=15), StopReason.BUDGET, exceeded=exceeded)
    assert verdict.status == ("completed" if ending == "complete" else "failed")
    assert verdict.budget_exceeded == exceeded.what
    assert verdict.reason is None or not verdict.reason.retriable
    assert nothing_left(exceeded).status == ("skipped" if ending == "complete" else "failed")


def test_a_full_context_completes_only_what_waits_for_it() -> None:
    full = Outcome("failed", REASON, (), context_exceeded=True)
    assert decide(full, Exit(code=1), None).status == "failed"
    assert decide(full, Exit(code=1), None, ends_when_full=True) == Verdict(
        "completed", ExitSuccess(), context_exceeded=True
    )


def test_a_verdict_comes_back_from_the_journal_as_it_was() -> None:
    what = BudgetExceeded(currency="duration", limit=1, used=1)
    for verdict in (
        Verdict("completed", ExitSuccess(), None, ("a", "b"), context_exceeded=True, budget_exceeded=what),
        Verdict("failed", ExitKilled(signal="SIGTERM"), FailureReason(type="rate-limit", retriable=True)),
        not_begun(StopReason.SKIP),
    ):
        assert from_json(json.loads(json.dumps(verdict.as_json()))) == verdict
