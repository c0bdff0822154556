"""Our end of a child's stdin: what is written is told, also when it is closed meanwhile."""

import os

import anyio
import pytest

from hankwatch.processes.pipes import WriteEnd


@pytest.mark.parametrize("size", [10, 1_000_000])
@pytest.mark.parametrize("steps", range(6))
async def test_a_write_says_whether_all_of_it_went_out_though_the_pipe_is_closed_meanwhile(
    steps: int, size: int
) -> None:
    """At whatever step of the write: a number that was given back may be another file's at once."""
    reading, writing = os.pipe()
    end = WriteEnd(os.fdopen(writing, "wb", buffering=0))
    told: list[bool] = []

    async def write() -> None:
        told.append(await end.write(b"x" * size))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        end.close()
        others = os.pipe()  # one of them has the number now
    with os.fdopen(reading, "rb") as child:
        assert told == [len(child.read()) == size]
    for other in others:
        os.close(other)
