"""What changed among the watched files and who reported it; pure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.workspaces import call, result

from hankwatch.events.activity import FromToolUse, FromWatcher
from hankwatch.events.shapes import PathError
from hankwatch.runner.globs import Globs
from hankwatch.runner.scan import Entry, Scan
from hankwatch.runner.tracked import MAX_HOLD_S, SETTLE_S, Content, TrackedFiles, named_paths

WATCHER = FromWatcher()


def tracked(*patterns: str, **options: Any) -> TrackedFiles:
    return TrackedFiles(Globs(patterns or ["**"]), "one#0", "one", ("/w",), **options)


def entry(version: int = 1) -> Entry:
    return Entry(version, version, 1)


def content(text: str, version: int = 1) -> Content:
    return Content(entry(version), f"sha of {text}", text)


@pytest.mark.parametrize(
    ("tool", "tool_input", "paths"),
    [
        ("Write", {"file_path": "/w/a.md", "content": "x"}, ["a.md"]),
        ("edit", {"filePath": "/w/a/../b.md"}, ["b.md"]),
        ("NotebookEdit", {"notebook_path": "/w/n.ipynb"}, ["n.ipynb"]),
        ("create", {"path": "./a//b.md"}, ["a/b.md"]),
        ("file_change", {"changes": [{"path": "/w/a", "kind": "add"}, {"path": "/w/b", "kind": "delete"}]}, ["a", "b"]),
        ("file_system.search_replace", {"filePath": "/w/a", "changes": [{"oldString": "path"}]}, ["a"]),
        ("Read", {"file_path": "/w/a.md"}, []),
        ("file_system.read_file", {"filePath": "/w/a.md"}, []),
        ("read_files", {"files": [{"path": "/w/a.md"}]}, []),
        ("file_editor", {"command": "view", "path": "/w/a.md"}, []),
        ("file_editor", {"command": "create", "path": "/w/a.md"}, ["a.md"]),
        ("Write", {"file_path": "/etc/passwd"}, []),
        ("Write", {"file_path": "../a"}, []),
        ("Write", {"file_path": "/w"}, []),
        ("Write", {"file_path": 7}, []),
        ("Bash", {"command": "echo > /w/a.md"}, []),
    ],
)
def test_the_files_a_call_may_write_are_read_from_its_arguments(
    tool: str, tool_input: dict[str, Any], paths: list[str]
) -> None:
    assert named_paths(tool, tool_input, ("/w",)) == paths


def test_a_new_file_is_created_then_modified_then_deleted() -> None:
    files = tracked()
    said = [files.adopt("a/b.md", one, WATCHER) for one in (content("1"), content("1", 2), content("2", 3), None, None)]
    assert [update.action if update else None for update in said] == ["created", None, "modified", "deleted", None]
    assert said[0] is not None
    assert said[0].dump() == {
        "codonId": "one#0",
        "baseCodonId": "one",
        "path": "a/b.md",
        "filename": "b.md",
        "content": "1",
        "action": "created",
        "source": {"kind": "watcher"},
    }
    assert said[3] is not None
    assert "content" not in said[3].dump()


def test_a_large_file_is_told_by_hash_and_size() -> None:
    update = tracked().adopt("a", Content(entry(300_000), "f" * 64, None), FromToolUse(tool_use_id="t"))
    assert update is not None
    data = update.dump()
    assert (data["sha256"], data["bytes"], "content" in data) == ("f" * 64, 300_000, False)
    assert data["source"] == {"kind": "tool_use", "toolUseId": "t"}


def test_a_file_that_can_no_longer_be_read_is_not_deleted() -> None:
    files = tracked()
    files.adopt("a", content("1"), WATCHER)
    assert files.adopt("a", Content(entry(2), None, None), WATCHER) is None
    assert files.due(Scan({"a": entry(2)}), 0.0, final=True) == []
    update = files.adopt("a", content("2", 3), WATCHER)
    assert update is not None
    assert update.action == "modified"


def test_the_watcher_reports_what_stands_still_for_long_enough() -> None:
    files = tracked()
    assert files.due(Scan({"a": entry(1)}), 0.0) == []
    assert files.waits
    assert files.due(Scan({"a": entry(2)}), SETTLE_S) == []
    assert files.due(Scan({"a": entry(2)}), 2 * SETTLE_S) == ["a"]


def test_a_file_that_never_stands_still_is_reported_all_the_same() -> None:
    files = tracked()
    due = [files.due(Scan({"a": entry(step)}), step * 0.5) for step in range(int(MAX_HOLD_S * 2) + 1)]
    assert due[-1] == ["a"]
    assert not any(due[:-1])


def test_what_an_open_call_names_is_its_to_report() -> None:
    files = tracked()
    files.note_call(call("t1", "Write", file_path="/w/a.md"))
    assert files.due(Scan({"a.md": entry()}), 0.0) == []
    assert files.due(Scan({"a.md": entry()}), 100.0) == []
    assert files.note_result(result("t1")) == ("a.md",)
    assert files.adopt("a.md", content("1"), FromToolUse(tool_use_id="t1")) is not None
    assert files.due(Scan({"a.md": entry()}), 200.0, final=True) == []


def test_a_call_without_result_leaves_its_file_to_the_last_look() -> None:
    files = tracked()
    files.note_call(call("t1", "Write", file_path="/w/a.md"))
    assert files.due(Scan({"a.md": entry()}), 0.0, final=True) == ["a.md"]


def test_what_a_call_names_outside_the_globs_is_nothing() -> None:
    files = tracked("*.md")
    files.note_call(call("t1", "Write", file_path="/w/a.txt"))
    assert files.note_result(result("t1")) == ()
    assert files.note_result(result("unknown")) == ()


def test_a_sentinels_report_is_told_only_when_a_tool_writes_it() -> None:
    files = tracked(is_report=lambda path: path == "report.md")
    assert files.due(Scan({"report.md": entry()}), 0.0, final=True) == []
    assert files.adopt("report.md", content("1"), FromToolUse(tool_use_id="t")) is not None


def test_a_link_is_not_a_file_and_one_that_became_a_link_is_gone() -> None:
    files = tracked()
    link = Scan({"a": Entry(1, 1, 1, is_link=True)})
    assert files.due(link, 0.0, final=True) == []
    files.adopt("a", content("1"), WATCHER)
    assert files.due(link, 0.0, final=True) == ["a"]


def test_files_below_a_folder_that_cannot_be_read_are_not_gone() -> None:
    files = tracked()
    for path in ("a/x", "b/x"):
        files.adopt(path, content("1"), WATCHER)
    assert files.due(Scan({}, [], [PathError(path="a", error="denied")]), 0.0, final=True) == ["b/x"]
    assert files.due(Scan({}, [], [PathError(path="", error="denied")]), 0.0, final=True) == []


def test_the_tree_has_one_root_list_per_pattern() -> None:
    files = tracked("**/*.md", "src")
    for path in ("src/deep/a.md", "src/b.py", "top.md"):
        files.adopt(path, content("1", 1_000_000_000), WATCHER)
    tree = [node.model_dump(by_alias=True) for node in files.tree().tree]
    assert [node["path"] for node in tree] == ["src", "top.md", "src"]
    assert [child["path"] for child in tree[2]["children"]] == ["src/b.py", "src/deep"]
    assert tree[1] == {
        "name": "top.md",
        "path": "top.md",
        "isDirectory": False,
        "lastModified": "1970-01-01T00:00:01.000Z",
        "children": [],
    }
    assert "lastModified" not in tree[0]


def test_a_path_too_deep_for_a_tree_is_left_out_of_it() -> None:
    files = tracked()
    assert files.adopt("d/" * 300 + "a", content("1"), WATCHER) is not None
    assert files.tree().tree == []


def test_a_name_that_is_no_text_is_told_as_text() -> None:
    files = tracked()
    update = files.adopt("b\udcff/a\udcff", content("1"), WATCHER)
    assert update is not None
    assert (update.path, update.filename) == ("b\ufffd/a\ufffd", "a\ufffd")
    assert files.tree().tree[0].children[0].name == "a\ufffd"


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", None]), st.booleans()), max_size=20)


@given(STEPS)
def test_what_is_told_adds_up_to_what_is_there(steps: list[tuple[str, str | None, bool]]) -> None:
    """Whoever folds the events holds the files as they are, and no event says what was said before."""
    files = tracked()
    disk: dict[str, Content | None] = {}
    held: dict[str, str | None] = {}
    for version, (path, text, by_tool) in enumerate(steps):
        disk[path] = content(text, version) if text is not None else None
        paths = [path] if by_tool else files.due(Scan({p: c.entry for p, c in disk.items() if c}), 0.0, final=True)
        for due in paths:
            update = files.adopt(due, disk.get(due), WATCHER)
            if update is None:
                continue
            assert (update.action == "created") == (due not in held)
            assert held.get(due) != update.content
            if update.action == "deleted":
                del held[due]
            else:
                held[due] = update.content
        assert held == {p: c.text for p, c in disk.items() if c}
