"""``init`` makes all of a hank or nothing of it (spec cli)."""

from pathlib import Path

import pytest

from hankwatch.bench.scaffold import scaffold
from hankwatch.core.errors import UsageError


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_scaffold_is_the_shipped_starter_with_its_schemas(tmp_path: Path, fixtures: Path) -> None:
    made = scaffold(tmp_path / "new" / "hank")
    written = content(tmp_path / "new" / "hank")
    assert sorted(written) == sorted(map(str, made.files))
    starter = content(fixtures / "starter")
    starter[".gitignore"] = starter.pop("gitignore")
    schemas = {path.name: path.read_bytes() for path in (fixtures.parent / "schemas").glob("*.json")}
    assert written == starter | {f"schemas/{name}": schemas[name] for name in schemas if f"schemas/{name}" in written}
    assert len(written) == len(starter) + 3


@pytest.mark.parametrize("taken", ["hank.json", "sentinels/failures.md"])
def test_what_exists_is_named_and_left_alone(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("mine")
    with pytest.raises(UsageError, match=taken) as caught:
        scaffold(tmp_path)
    assert content(tmp_path) == {taken: b"mine"}
    assert ("hankwatch validate" in (caught.value.hint or "")) is (taken == "hank.json")


def test_a_dangling_link_is_something_that_exists(tmp_path: Path) -> None:
    (tmp_path / "check.json").symlink_to("nowhere")
    with pytest.raises(UsageError, match=r"check\.json"):
        scaffold(tmp_path)


def test_a_gitignore_and_other_files_are_no_obstacle(tmp_path: Path) -> None:
    for name in (".gitignore", "README.md"):
        (tmp_path / name).write_text("mine")
    made = scaffold(tmp_path)
    assert made.kept == (Path(".gitignore"),)
    assert content(tmp_path)[".gitignore"] == content(tmp_path)["README.md"] == b"mine"


@pytest.mark.parametrize("obstacle", ["hank", "hank/sentinels"])
def test_a_failure_on_the_way_leaves_nothing_behind(tmp_path: Path, obstacle: str) -> None:
    (tmp_path / obstacle).parent.mkdir(exist_ok=True)
    (tmp_path / obstacle).write_text("a file")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="is no folder"):
        scaffold(tmp_path / "hank")
    assert sorted(tmp_path.rglob("*")) == before
