"""What a codon is done with: moved whole, never over anything, and the manifest knows where it is."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.workspaces import contents, execution, write

from hankwatch.runner.archive import Archive, Owner, codon_folder, loop_folder
from hankwatch.runner.layout import Layout

OWNER = Owner("r-1", "one", "one")
AT_MS = 7


def archived(layout: Layout) -> dict[str, str]:
    return contents(layout.root / "rigArchive")


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (codon_folder("one"), "one"),
        (codon_folder("one", loop_id="again", iteration=3), "again-3/one"),
        (loop_folder("again"), "again-loop"),
        (codon_folder(".."), "_.."),
    ],
)
def test_the_folders_are_those_of_the_contract(folder: str, expected: str) -> None:
    assert folder == expected


def test_what_matches_is_moved_and_the_rest_stays(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"out/a": "A", "out/b/c": "C", "x.log": "X", "keep.md": "K", "sub/y.log": "Y"})
    end = Archive(layout).archive(OWNER, ["out", "**/*.log", "missing"], AT_MS)
    assert contents(layout.agent_root) == {"keep.md": "K", "sub/": ""}
    assert archived(layout) == {"one/out/a": "A", "one/out/b/c": "C", "one/sub/y.log": "Y", "one/x.log": "X"}
    payload = end.payload("one", "one")
    assert payload is not None
    assert (payload.TYPE, payload.archived_paths) == ("archive.completed", ["out", "sub/y.log", "x.log"])


def test_nothing_to_archive_is_no_event(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    end = Archive(layout).archive(OWNER, ["missing/**"], AT_MS)
    assert end.payload("one") is None
    assert not (layout.root / "rigArchive").exists()


def test_the_manifest_names_each_file_and_another_process_reads_it(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    Archive(layout).archive(OWNER, ["a"], AT_MS)
    manifest = json.loads((layout.managed / "archive-manifest.json").read_text())
    assert manifest == {
        "version": 1,
        "entries": [
            {
                "runId": "r-1",
                "ownerId": "one",
                "path": "a",
                "source": "agentRoot/a",
                "target": "rigArchive/one/a",
                "state": "archived",
                "atMs": 7,
            }
        ],
    }
    again = Archive(layout)
    assert [entry.path for entry in again.entries] == ["a"]
    again.forget(again.entries)
    assert Archive(layout).entries == ()


def test_archiving_twice_moves_what_is_new_and_tells_all(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    Archive(layout).archive(OWNER, ["*"], AT_MS)
    write(layout.agent_root, {"b": "2"})
    assert Archive(layout).archive(OWNER, ["*"], AT_MS).archived == ("a", "b")


def test_what_is_in_the_archive_is_never_overwritten(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    for version in range(3):
        write(layout.agent_root, {"a": str(version)})
        Archive(layout).archive(Owner(f"r-{version}", "one", "one"), ["a"], AT_MS)
    assert archived(layout) == {"one/a": "0", "one/a~1": "1", "one/a~2": "2"}


def test_links_are_moved_as_links_and_nothing_is_followed(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    write(tmp_path, {"mine/precious": "kept"})
    (layout.agent_root / "link").symlink_to(tmp_path / "mine")
    end = Archive(layout).archive(OWNER, ["link/precious", "link/**", "*"], AT_MS)
    assert contents(tmp_path / "mine") == {"precious": "kept"}
    assert archived(layout) == {"one/link": f"-> {tmp_path / 'mine'}"}
    assert end.archived == ("link",)


def test_a_link_in_the_archive_leads_nowhere(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    write(tmp_path, {"mine/x": "kept"})
    (layout.root / "rigArchive").symlink_to(tmp_path / "mine")
    end = Archive(layout).archive(OWNER, ["a"], AT_MS)
    assert contents(layout.agent_root) == {"a": "1"}
    assert contents(tmp_path / "mine") == {"x": "kept"}
    payload = end.payload("one")
    assert payload is not None
    assert payload.TYPE == "archive.partial"
    assert "symbolic link" in payload.dump()["failedPaths"][0]["error"]
    assert Archive(layout).entries == ()


@pytest.mark.parametrize("pattern", ["../other", "/etc/*", "a/../../x"])
def test_a_pattern_that_leaves_the_workspace_fails_alone(tmp_path: Path, pattern: str) -> None:
    layout = execution(tmp_path, {"a": "1"})
    end = Archive(layout).archive(OWNER, [pattern, "a"], AT_MS)
    assert end.archived == ("a",)
    assert [failure.path for failure in end.failed] == [pattern]


def test_a_path_that_cannot_be_moved_fails_alone(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1", "b": "2"})
    write(layout.root, {"rigArchive/one": "a file stands where the folder should be"})
    write(layout.agent_root, {"c": "3"})
    assert [failure.path for failure in Archive(layout).archive(OWNER, ["a", "b"], AT_MS).failed] == ["a", "b"]
    assert contents(layout.agent_root) == {"a": "1", "b": "2", "c": "3"}
    assert Archive(layout).archive(Owner("r-1", "two", "two"), ["c"], AT_MS).archived == ("c",)


def test_the_data_and_the_agents_repository_stay(tmp_path: Path) -> None:
    layout = execution(tmp_path, {".git/config": "", ".env": "E"})
    (layout.agent_root / "read_only_data_source").symlink_to(tmp_path)
    assert Archive(layout).archive(OWNER, ["**"], AT_MS).archived == (".env",)
    assert sorted(path.name for path in layout.agent_root.iterdir()) == [".git", "read_only_data_source"]


def test_names_that_are_no_text_are_archived_like_others(tmp_path: Path) -> None:
    odd = sorted([os.fsdecode(b"\xff"), "new\nline", "-rf", "ü"])
    layout = execution(tmp_path, dict.fromkeys(odd, "x"))
    end = Archive(layout).archive(OWNER, ["*"], AT_MS)
    assert sorted(entry.path for entry in Archive(layout).entries) == odd
    payload = end.payload("one")
    assert payload is not None
    assert "\ufffd" in payload.archived_paths


def test_a_damaged_manifest_is_put_aside_and_named(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    (layout.managed / "archive-manifest.json").write_text("{")
    archive = Archive(layout)
    assert archive.damaged is not None
    assert archive.damaged.read_text() == "{"
    assert archive.archive(OWNER, ["a"], AT_MS).archived == ("a",)
    assert Archive(layout).damaged is None


@pytest.mark.parametrize("content", ["[]", "{}", '{"entries": [1, {"x": 2}, {"path": "a"}]}', '{"entries": 7}'])
def test_a_manifest_of_another_runtime_is_no_entry(tmp_path: Path, content: str) -> None:
    layout = execution(tmp_path)
    (layout.managed / "archive-manifest.json").write_text(content)
    assert Archive(layout).entries == ()


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PATTERNS = st.lists(st.sampled_from(["a", "*", "**", "**/b", "a/*", "c/**", "?/b", "{a,b}"]), min_size=1, max_size=3)


@settings(max_examples=60)
@given(files=st.sets(PATHS, max_size=6), patterns=PATTERNS)
def test_no_file_is_lost_or_doubled_whatever_is_archived(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], patterns: list[str]
) -> None:
    plain = {path for path in files if not any(other.startswith(f"{path}/") for other in files)}
    layout = execution(tmp_path_factory.mktemp("archive"), {path: path for path in plain})
    Archive(layout).archive(OWNER, patterns, AT_MS)
    left, moved = contents(layout.agent_root), contents(layout.root / "rigArchive/one")
    texts = [text for text in (*left.values(), *moved.values()) if text]
    assert sorted(texts) == sorted(plain)
    assert all(path == text for path, text in {**left, **moved}.items() if text)
