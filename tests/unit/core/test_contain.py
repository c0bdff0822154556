import asyncio

import pytest

from hankwatch.core.contain import contain
from hankwatch.core.errors import HankwatchError, InfrastructureError


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), HankwatchError("x"), MemoryError()])
def test_an_observers_failure_is_reported_and_goes_no_further(error: Exception) -> None:
    reports: list[Exception] = []
    with contain(reports.append):
        raise error
    assert reports == [error]


@pytest.mark.parametrize("error", [InfrastructureError("x"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_infrastructure_failures_and_cancellation_pass(error: BaseException) -> None:
    reports: list[Exception] = []
    with pytest.raises(type(error)), contain(reports.append):
        raise error
    assert reports == []


def test_success_reports_nothing() -> None:
    reports: list[Exception] = []
    with contain(reports.append):
        pass
    assert reports == []
