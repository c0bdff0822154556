"""The next step is a pure function of the hank and what was done so far."""

import json
from typing import Any, get_args

import pytest
from tests.support.hanks import codon, hank, loop

from hankwatch.events.shapes import CodonStatus
from hankwatch.hank.model import Codon, Hank
from hankwatch.runner.plan import Finish, IterationEnd, StartCodon, iteration_end, next_step, retry_wait_ms
from hankwatch.runner.state import CodonRecord, latest

PLAIN = Hank.model_validate_json(json.dumps(hank(codon("a"), codon("b"))))


def records(**statuses: CodonStatus) -> list[CodonRecord]:
    return [CodonRecord(codon_id, 1, status, "") for codon_id, status in statuses.items()]


def started(hank: Hank, *, stopping: bool = False, **statuses: CodonStatus) -> tuple[str, str | None]:
    step = next_step(hank, records(**statuses), stopping=stopping)
    assert isinstance(step, StartCodon)
    return step.codon_id, step.previous


def test_a_run_starts_at_the_first_codon() -> None:
    assert started(PLAIN) == ("a", None)


@pytest.mark.parametrize("status", ["completed", "skipped"])
def test_a_done_codon_is_followed_by_the_next(status: CodonStatus) -> None:
    assert started(PLAIN, a=status) == ("b", "a")


def test_a_failed_codon_ends_the_run() -> None:
    assert next_step(PLAIN, records(a="failed")) == Finish(success=False, reason="codon failure: a")


def test_a_failed_codon_is_the_next_one_when_it_is_asked_for_again_unless_the_run_stops() -> None:
    failed = records(a="completed", b="failed")
    step = next_step(PLAIN, failed, again=True)
    assert isinstance(step, StartCodon)
    assert (step.codon_id, step.previous) == ("b", "a")
    assert next_step(PLAIN, failed, again=True, stopping=True) == Finish(success=False, reason="codon failure: b")


def test_an_ignored_failure_counts_as_done() -> None:
    ignored = CodonRecord("a", 1, "failed", "", verdict={"failureIgnored": True})
    step = next_step(PLAIN, [ignored])
    assert isinstance(step, StartCodon)
    assert (step.codon_id, step.previous) == ("b", "a")


def test_the_last_attempt_counts() -> None:
    assert next_step(PLAIN, [*records(a="failed"), *records(a="completed", b="completed")]) == Finish(
        True, "all codons completed"
    )


def test_all_done_is_success() -> None:
    assert next_step(PLAIN, records(a="completed", b="skipped")) == Finish(True, "all codons completed")


def test_a_stopping_run_starts_nothing_more() -> None:
    assert next_step(PLAIN, records(a="completed"), stopping=True) == Finish(success=False, reason="stopped")


def test_a_stop_after_the_last_codon_is_still_success() -> None:
    assert next_step(PLAIN, records(a="completed", b="completed"), stopping=True) == Finish(
        True, "all codons completed"
    )


def test_every_status_leads_somewhere() -> None:
    for status in get_args(CodonStatus):
        assert isinstance(next_step(PLAIN, records(a=status)), StartCodon | Finish)


def failed(**reason: Any) -> CodonRecord:
    verdict = {"failureReason": {"type": "api-error", "retriable": True, **reason}}
    return CodonRecord("a", 1, "failed", "", verdict=verdict)


def retrying(**config: Any) -> Codon:
    return Codon.model_validate_json(json.dumps(codon("a", onFailure="retry", retryConfig=config or None)))


@pytest.mark.parametrize(("attempts", "wait_ms"), [(1, 1_000), (2, 2_000), (3, 4_000), (4, 5_000)])
def test_the_wait_doubles_up_to_its_bound(attempts: int, wait_ms: int) -> None:
    assert retry_wait_ms(retrying(maxAttempts=10, maxDelayMs=5_000), [failed()] * attempts) == wait_ms


def test_what_the_provider_asks_for_is_waited_up_to_the_bound() -> None:
    assert retry_wait_ms(retrying(), [failed(retryAfterMs=30_000)]) == 30_000
    assert retry_wait_ms(retrying(maxDelayMs=10), [failed(retryAfterMs=30_000)]) == 10


def test_attempts_are_counted_with_the_first() -> None:
    assert retry_wait_ms(retrying(), [failed()] * 2) is not None
    assert retry_wait_ms(retrying(), [failed()] * 3) is None
    assert retry_wait_ms(retrying(maxAttempts=1), [failed()]) is None


def test_a_permanent_failure_is_not_tried_again() -> None:
    assert retry_wait_ms(retrying(), [failed(retriable=False)]) is None


def test_only_a_failure_with_the_policy_is_tried_again() -> None:
    assert retry_wait_ms(retrying(), records(a="completed")) is None
    assert retry_wait_ms(Codon.model_validate_json(json.dumps(codon("a"))), [failed()]) is None


INNER = (codon("b", continuationMode="continue-previous"), codon("c", continuationMode="continue-previous"))


def looping(*inner: dict[str, Any], **terminate: Any) -> Hank:
    items = hank(codon("a"), loop(*inner, terminateOn=terminate), codon("z"))
    return Hank.model_validate_json(json.dumps(items))


TWICE = looping(*INNER, type="iterationLimit", limit=2)
UNTIL_FULL = looping(*INNER, type="contextExceeded")


def walk(hank: Hank, **verdicts: Any) -> list[tuple[str, str | None]]:
    """(id, previous) of all codons in order, when each completes, or ends with the verdict given for its id."""
    done: list[CodonRecord] = []
    walked = []
    while isinstance(step := next_step(hank, done), StartCodon):
        walked.append((step.codon_id, step.previous))
        said = verdicts.get(step.codon_id.replace("#", "_"), {})
        done.append(CodonRecord(step.codon_id, 1, said.get("status", "completed"), "", verdict=said))
        assert len(done) < 50
    return walked


def test_a_loop_runs_its_codons_as_often_as_it_says() -> None:
    assert walk(TWICE) == [
        ("a", None),
        ("b#0", "a"),
        ("c#0", "b#0"),
        ("b#1", "c#0"),
        ("c#1", "b#1"),
        ("z", "c#1"),
    ]


def test_a_full_context_ends_the_loop_that_waits_for_it_at_once() -> None:
    ids = [codon_id for codon_id, _ in walk(UNTIL_FULL, b_2={"contextExceeded": True})]
    assert ids == ["a", "b#0", "c#0", "b#1", "c#1", "b#2", "z"]


def test_a_full_context_does_not_end_a_counted_loop() -> None:
    assert walk(TWICE, b_0={"contextExceeded": True}) == walk(TWICE)


def test_a_budget_that_was_reached_ends_the_loop() -> None:
    ids = [codon_id for codon_id, _ in walk(TWICE, b_0={"budgetExceeded": {"currency": "cost"}})]
    assert ids == ["a", "b#0", "z"]


def test_a_loop_in_which_nothing_succeeds_ends_instead_of_going_on_for_ever() -> None:
    failing = {name: {"status": "failed", "failureIgnored": True} for name in ("b_0", "c_0")}
    assert [codon_id for codon_id, _ in walk(UNTIL_FULL, **failing)] == ["a", "b#0", "c#0", "z"]


def test_an_iteration_ends_with_its_last_codon() -> None:
    step = next_step(TWICE, records(a="completed"))
    assert isinstance(step, StartCodon)
    assert step.place is not None
    done = [CodonRecord(codon_id, 1, "completed", "") for codon_id in ("a", "b#0")]
    assert iteration_end(step.place, latest(done)) is None
    step = next_step(TWICE, done)
    assert isinstance(step, StartCodon)
    assert step.place is not None
    done.append(CodonRecord("c#0", 1, "completed", ""))
    assert iteration_end(step.place, latest(done)) == IterationEnd(step.place, is_final=False)
