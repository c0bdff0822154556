"""kill -9 while files are archived: each is in one place, and the next process finishes the move."""

import random
from pathlib import Path

import pytest
from tests.support.killed import killed_at_step
from tests.support.workspaces import contents, execution

from hankwatch.runner.archive import Archive, Owner

ARCHIVING = """
from pathlib import Path
from hankwatch.runner.archive import Archive, Owner
from hankwatch.runner.layout import Layout
Archive(Layout(Path(sys.argv[2]))).archive(Owner("r-1", "one", "one"), ["**/*.log", "out"], 7)
"""
FILES: dict[str, str | bytes] = {"a.log": "A", "b/c.log": "C", "out/x": "X", "out/deep/y": "Y", "keep": "K"}
STEPS = 30
"""More than it has."""


def check_killed_archive(tmp_path: Path, step: int) -> bool:
    layout = execution(tmp_path, FILES)
    killed = killed_at_step(ARCHIVING, step, str(layout.root))
    found = [*contents(layout.agent_root).values(), *contents(layout.root / "rigArchive").values()]
    assert sorted(text for text in found if text) == sorted(map(str, FILES.values()))
    end = Archive(layout).archive(Owner("r-1", "one", "one"), ["**/*.log", "out"], 7)
    assert sorted(end.archived) == ["a.log", "b/c.log", "out"]
    assert end.failed == ()
    assert contents(layout.agent_root) == {"b/": "", "keep": "K"}
    assert contents(layout.root / "rigArchive/one") == {
        "a.log": "A",
        "b/c.log": "C",
        "out/deep/y": "Y",
        "out/x": "X",
    }
    assert all(entry.state == "archived" for entry in Archive(layout).entries)
    return killed


@pytest.mark.slow
@pytest.mark.parametrize("step", sorted(random.Random(4).sample(range(14), 6)))
def test_an_archive_killed_anywhere_loses_nothing_and_is_finished(tmp_path: Path, step: int) -> None:
    assert check_killed_archive(tmp_path, step)


@pytest.mark.soak
def test_an_archive_killed_at_every_step_loses_nothing_and_is_finished(tmp_path: Path) -> None:
    killed = [check_killed_archive(tmp_path / str(step), step) for step in range(STEPS)]
    assert killed[0]
    assert not killed[-1]
