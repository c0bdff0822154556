"""kill -9 while a rollback runs: it is finished when the next run is in the journal, and taken back otherwise."""

import pickle
import random
from pathlib import Path

import pytest
from tests.support.killed import killed_at_step
from tests.support.rollbacks import three_codons
from tests.support.workspaces import execution

from hankwatch.runner.archive import Archive
from hankwatch.runner.rollback import recover
from hankwatch.runner.rollback_plan import To, choose

ROLLING_BACK = """
import anyio, pickle
from pathlib import Path
from tests.support.rollbacks import *
async def main():
    root = Path(sys.argv[2])
    history = await History.begin(Layout(root), Globs(["tracked/**", "*.md"]))
    await history.go(pickle.loads((root.parent / "choice").read_bytes()))
anyio.run(main)
"""
RECOVERING = """
from pathlib import Path
from tests.support.rollbacks import *
from hankwatch.runner.rollback import recover
root = Path(sys.argv[2])
history = History(Layout(root), None)
recover(history.layout, Archive(history.layout), history.run_exists)
"""
STEPS = 80
"""More than it has."""


async def check_killed_rollback(tmp_path: Path, step: int, second: int | None = None) -> bool:
    layout = execution(tmp_path)
    history = await three_codons(layout)
    (tmp_path / "choice").write_bytes(pickle.dumps(choose(history.thread, To(codon="one"))))
    killed = killed_at_step(ROLLING_BACK, step, str(layout.root))
    if not history.journal.exists():
        assert texts(history.everything()) >= texts(history.after["three"]), "nothing is lost, whatever is where"
    if second is not None:
        killed_at_step(RECOVERING, second, str(layout.root))
    recovered = recover(layout, Archive(layout), history.run_exists)
    if history.journal.exists():
        assert recovered is None or recovered.finished is not None
        assert history.stands() == {**history.after["one"], "agentRoot/notes.txt": "in no checkpoint"}
        assert [entry.path for entry in Archive(layout).entries] == ["tracked/old.log"]
    else:
        assert history.stands() == history.after["three"]
        assert len(Archive(layout).entries) == 4
    assert recover(layout, Archive(layout), history.run_exists) is None
    assert not (layout.managed / "rollback").exists()
    return killed


def texts(stands: dict[str, str]) -> set[str]:
    return set(stands.values())


@pytest.mark.slow
@pytest.mark.parametrize("step", sorted(random.Random(4).sample(range(65), 6)))
async def test_a_rollback_killed_anywhere_is_finished_or_taken_back(tmp_path: Path, step: int) -> None:
    await check_killed_rollback(tmp_path, step)


@pytest.mark.slow
@pytest.mark.parametrize(("step", "second"), [(20, 3), (30, 8), (200, 0)])
async def test_a_recovery_that_is_killed_too_goes_on(tmp_path: Path, step: int, second: int) -> None:
    await check_killed_rollback(tmp_path, step, second)


@pytest.mark.soak
async def test_a_rollback_killed_at_every_step_is_finished_or_taken_back(tmp_path: Path) -> None:
    killed = [await check_killed_rollback(tmp_path / str(step), step) for step in range(STEPS)]
    assert killed[0]
    assert not killed[-1]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(60))
async def test_a_rollback_and_its_recovery_killed_at_random_lose_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    await check_killed_rollback(tmp_path, chance.randrange(65), chance.randrange(40))
