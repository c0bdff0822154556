"""What fails inside a task group comes out as it was raised."""

import anyio
import pytest

from hankwatch.core.errors import InfrastructureError, UsageError
from hankwatch.core.tasks import task_group

DISK_FULL = InfrastructureError("the disk is full")


async def fail(error: Exception) -> None:
    raise error


async def test_a_failure_of_the_block_is_no_group() -> None:
    with pytest.raises(UsageError, match="not meant"):
        async with task_group():
            raise UsageError("not meant")


async def test_a_failure_of_a_task_keeps_its_cause() -> None:
    error = UsageError("not meant")
    error.__cause__ = OSError("the cause")
    with pytest.raises(UsageError) as caught:
        async with task_group() as tasks:
            tasks.start_soon(fail, error)
    assert isinstance(caught.value.__cause__, OSError)


async def test_nested_groups_are_opened() -> None:
    with pytest.raises(UsageError):
        async with task_group(), anyio.create_task_group(), anyio.create_task_group() as tasks:
            tasks.start_soon(fail, UsageError("deep inside"))


async def fail_side_by_side(*errors: Exception) -> None:
    async with task_group() as tasks:
        for error in errors:
            tasks.start_soon(fail, error)


async def test_an_infrastructure_failure_goes_before_the_others() -> None:
    with pytest.raises(InfrastructureError):
        await fail_side_by_side(UsageError("one"), DISK_FULL)


async def test_several_other_failures_stay_together() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await fail_side_by_side(UsageError("one"), UsageError("two"))
    assert len(caught.value.exceptions) == 2


async def test_cancelling_the_group_raises_nothing() -> None:
    async with task_group() as tasks:
        tasks.start_soon(anyio.sleep_forever)
        tasks.cancel_scope.cancel()
