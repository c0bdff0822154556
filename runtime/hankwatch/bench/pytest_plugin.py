"""pytest collects checks as its own items: `*.check.json` and `check.json` (entry point ``pytest11``, name ``hankwatch``).

Loaded into every pytest run of an environment that has hankwatch, so it imports nothing until it meets a check;
``-p no:hankwatch`` leaves it out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_FOLDER_FORM = "check.json"
_SUFFIX = ".check.json"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "CheckFile | None":
    """A check among the files that pytest looks at."""
    if file_path.name != _FOLDER_FORM and not file_path.name.endswith(_SUFFIX):
        return None
    from hankwatch.bench.check.load import is_check

    return CheckFile.from_parent(parent, path=file_path) if is_check(file_path) else None


class CheckFile(pytest.File):
    """The file of one check."""

    def collect(self) -> Iterator["CheckItem"]:
        """Its only item."""
        yield CheckItem.from_parent(self, name="check")


class CheckItem(pytest.Item):
    """One check, carried out as `hankwatch check` does."""

    def runtest(self) -> None:
        """Carry it out; what is not as expected is the failure's text."""
        import anyio

        here = Path.cwd()
        path = self.path.relative_to(here) if self.path.is_relative_to(here) else self.path
        result = anyio.run(_carry_out, path)
        if result.outcome != "passed":
            raise CheckFailed("\n".join((f"check {result.id} {result.outcome}", *result.lines())))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The same words as on the command line, without a traceback."""
        return str(excinfo.value) if isinstance(excinfo.value, CheckFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands."""
        return self.path, 0, f"check {self.path.parent.name}"


class CheckFailed(Exception):
    """What a check found that was not as expected."""


async def _carry_out(path: Path) -> Any:
    from hankwatch.bench.check.carry import carry_out
    from hankwatch.core.clock import SystemClock
    from hankwatch.sandbox.sandbox import Sandbox

    async with Sandbox(clock=SystemClock()) as sandbox:
        return await carry_out(path, sandbox)
