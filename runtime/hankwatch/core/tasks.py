"""A task group whose failure comes out as it was raised."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from hankwatch.core.errors import InfrastructureError


@asynccontextmanager
async def task_group() -> AsyncIterator[anyio.abc.TaskGroup]:
    """Anyio's task group, without the exception groups around what it raises.

    An ``InfrastructureError`` goes before whatever failed with it: it is what ends the run. Several other
    failures stay the group they are.
    """
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        failures = list(_failures(group))
        infrastructure = [error for error in failures if isinstance(error, InfrastructureError)]
        if not infrastructure and len(failures) > 1:
            raise
        error = (infrastructure or failures)[0]
        raise error from error.__cause__


def _failures(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _failures(error)
        else:
            yield error
