import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hankwatch.core import errors, request_errors
from hankwatch.core.errors import HankwatchError, InfrastructureError, not_written


def _tree(error: type[HankwatchError]) -> Iterator[type[HankwatchError]]:
    yield error
    for child in error.__subclasses__():
        yield from _tree(child)


MODULES = {errors.__name__, request_errors.__name__}
OURS = [error for error in _tree(HankwatchError) if error.__module__ in MODULES]


@pytest.mark.parametrize("error", OURS)
def test_the_drawing_shows_every_error(error: type[HankwatchError]) -> None:
    assert errors.__doc__ is not None
    assert f" {error.__name__} " in errors.__doc__


def test_codes_are_unique_kebab_case() -> None:
    codes = [error.code for error in OURS]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and " " not in code and "_" not in code for code in codes)


@pytest.mark.parametrize("error", OURS)
def test_only_an_infrastructure_failure_exits_with_three(error: type[HankwatchError]) -> None:
    assert (error.exit_code == 3) is issubclass(error, InfrastructureError)


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [(errno.ENOSPC, 3), (errno.EROFS, 3), (errno.EIO, 3), (errno.EACCES, 2), (errno.ENOENT, 2), (errno.EISDIR, 2)],
)
def test_a_file_that_cannot_be_written_is_its_namers_fault_only_where_another_name_would_do(
    number: int, exit_code: int
) -> None:
    error = not_written(Path("report.html"), OSError(number, os.strerror(number)), hint="--out FILE")
    assert error.exit_code == exit_code
    assert str(error) == f"report.html cannot be written: {os.strerror(number)}"
    assert error.hint
