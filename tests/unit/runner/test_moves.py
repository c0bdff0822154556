"""Many renames as one: doing it again changes nothing, undoing it brings everything back."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.workspaces import contents, write

from hankwatch.core.errors import CheckpointFailed
from hankwatch.runner.durable import read_json, write_json
from hankwatch.runner.moves import MovePlan, Step, displace, place

FOLDER = ".managed/plan"


def plan(root: Path, *steps: Step) -> MovePlan:
    return MovePlan(root, root / FOLDER, steps, {"for": "whoever"})


def outside(root: Path) -> dict[str, str]:
    return {path: text for path, text in contents(root).items() if not path.startswith(".managed")}


def test_a_plan_is_read_by_another_process_until_it_is_settled(tmp_path: Path) -> None:
    begun = plan(tmp_path, displace("a", FOLDER))
    begun.begin()
    loaded = MovePlan.load(tmp_path, tmp_path / FOLDER)
    assert loaded == begun
    loaded.discard()
    assert MovePlan.load(tmp_path, tmp_path / FOLDER) is None


def test_what_a_settled_plan_left_behind_is_removed(tmp_path: Path) -> None:
    write(tmp_path, {f"{FOLDER}/safe/a": "rubbish"})
    assert MovePlan.load(tmp_path, tmp_path / FOLDER) is None
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": [{}], "note": {}, "state": "doing"}'])
def test_a_plan_that_cannot_be_read_is_an_error_and_stays(tmp_path: Path, text: str) -> None:
    write(tmp_path, {f"{FOLDER}/plan.json": text, f"{FOLDER}/safe/a": "kept"})
    with pytest.raises(CheckpointFailed):
        MovePlan.load(tmp_path, tmp_path / FOLDER)
    assert (tmp_path / FOLDER / "safe/a").exists()


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    write(tmp_path, {"a": "in the way", f"{FOLDER}/stage/a": "new"})
    moving = plan(tmp_path, place("a", FOLDER, "a"))
    moving.begin()
    with pytest.raises(FileExistsError):
        moving.carry_out()
    moving.undo()
    assert outside(tmp_path) == {"a": "in the way"}


def test_an_optional_step_fails_alone_and_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "in the way", "store/b": "2", "store/c": "3"})
    moving = plan(
        tmp_path,
        displace("a", FOLDER),
        Step("restore", "store/b", "b", optional=True),
        Step("restore", "store/c", "d/c"),
    )
    moving.begin()
    assert list(moving.carry_out()) == ["store/b"]
    assert outside(tmp_path) == {"b": "in the way", "d/c": "3", "store/b": "2"}


NAMES = st.sampled_from(["a", "b", "d/a", "d/b"])


@settings(max_examples=30)
@given(old=st.sets(NAMES), gone=st.sets(NAMES), new=st.sets(NAMES), done=st.integers(0, 12))
def test_whatever_was_done_is_done_again_or_undone_exactly(
    tmp_path_factory: pytest.TempPathFactory, old: set[str], gone: set[str], new: set[str], done: int
) -> None:
    root = tmp_path_factory.mktemp("moves")
    write(root, dict.fromkeys(old, "old"))
    before = outside(root)
    steps = [displace(path, FOLDER) for path in sorted(old & (gone | new))]
    steps += [Step("folder", "", "d")] if not (root / "d").exists() else []
    steps += [place(path, FOLDER, path) for path in sorted(new)]

    def begin() -> MovePlan:
        write(root, {f"{FOLDER}/stage/{path}": "new" for path in new})
        begun = plan(root, *steps)
        begun.begin()
        for step in steps[:done]:  # as far as a killed process came
            begun._do(step)
        return begun

    begin().undo()
    assert outside(root) == before
    moved = begin()
    moved.carry_out()
    after = outside(root)
    assert {path for path, text in after.items() if text == "new"} == new
    moved.carry_out()
    assert outside(root) == after
    moved.undo()
    assert outside(root) == before


def test_a_json_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "value.json"
    assert read_json(path) is None
    write_json(path, {"name": "b\udcff"})
    with pytest.raises(TypeError):
        write_json(path, {"name": object()})
    assert read_json(path) == {"name": "b\udcff"}
    assert [entry.name for entry in path.parent.iterdir() if entry.name == path.name] == [path.name]
