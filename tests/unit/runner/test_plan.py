"""The next step is a pure function of the hank and the run so far."""

from typing import get_args

import pytest

from hankwatch.events.shapes import CodonStatus
from hankwatch.runner.plan import Finish, StartCodon, next_step
from hankwatch.runner.state import CodonRecord, RunRecord

CODONS = ("a", "b")


def run_with(**statuses: CodonStatus) -> RunRecord:
    return RunRecord("r", "", codons=tuple(CodonRecord(c, 1, s, "") for c, s in statuses.items()))


def test_an_empty_run_starts_at_the_first_codon() -> None:
    assert next_step(CODONS, run_with()) == StartCodon(0, "a")


@pytest.mark.parametrize("status", ["completed", "skipped"])
def test_a_done_codon_is_followed_by_the_next(status: CodonStatus) -> None:
    assert next_step(CODONS, run_with(a=status)) == StartCodon(1, "b")


def test_a_failed_codon_ends_the_run() -> None:
    assert next_step(CODONS, run_with(a="failed")) == Finish(success=False, reason="codon failure: a")


def test_all_done_is_success() -> None:
    assert next_step(CODONS, run_with(a="completed", b="skipped")) == Finish(True, "all codons completed")


def test_a_stopping_run_starts_nothing_more() -> None:
    assert next_step(CODONS, run_with(a="completed"), stopping=True) == Finish(success=False, reason="stopped")


def test_a_stop_after_the_last_codon_is_still_success() -> None:
    assert next_step(CODONS, run_with(a="completed", b="completed"), stopping=True) == Finish(
        True, "all codons completed"
    )


def test_every_status_leads_somewhere() -> None:
    for status in get_args(CodonStatus):
        assert isinstance(next_step(CODONS, run_with(a=status)), StartCodon | Finish)
