"""The watched files of a real workspace: what is told when, and what is not."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.children import flowing
from tests.support.workspaces import Emitted, call, execution, look_without_end, result, write

from hankwatch.core.clock import VirtualClock
from hankwatch.events.activity import FileUpdated
from hankwatch.runner import files as module
from hankwatch.runner.files import FileTracker, read_content
from hankwatch.runner.globs import Globs
from hankwatch.runner.tracked import TrackedFiles


class Watched:
    """A tracker over a workspace; ``told`` lists its events in short."""

    def __init__(self, tmp_path: Path, *patterns: str, **options: Any) -> None:
        self.root = execution(tmp_path).agent_root
        self.clock = VirtualClock()
        self.heard = Emitted()
        files = TrackedFiles(Globs(patterns), "one", "one", (str(self.root),), **options)
        self.tracker = FileTracker(self.root, files, emit=self.heard, clock=self.clock)

    @property
    def told(self) -> list[tuple[str, str, str | None]]:
        updates = [payload for payload in self.heard.payloads if isinstance(payload, FileUpdated)]
        return [(update.path, update.action, update.source.kind if update.source else None) for update in updates]

    @property
    def types(self) -> list[str]:
        return [payload.TYPE for payload in self.heard.payloads]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        await self.tracker.start()
        async with flowing(self.clock, step_s=0.02), self.tracker.watching():
            yield

    async def until(self, what: Callable[[], bool]) -> None:
        for _ in range(1_500):
            if what():
                return
            await anyio.sleep(0.01)
        raise AssertionError((self.types, self.told))


async def test_a_look_at_a_huge_workspace_can_be_cancelled_and_nothing_of_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, "**/*.md")
    huge = look_without_end(monkeypatch)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.tracker.start)
        await anyio.to_thread.run_sync(huge.begun.wait)
        tasks.cancel_scope.cancel()
    assert watched.types == []
    assert await anyio.to_thread.run_sync(huge.ended.wait, 10), "its thread ends too"


async def test_reading_a_huge_file_ends_when_it_is_given_up(tmp_path: Path) -> None:
    asked = iter([False])
    write(tmp_path, {"huge": b"x" * (3 * module._CHUNK_BYTES)})
    assert read_content(tmp_path, "huge", lambda: next(asked, True)) is None
    assert read_content(tmp_path, "huge") is not None


async def test_what_is_there_already_is_told_first_then_the_tree(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**/*.md")
    write(watched.root, {"b.md": "B", "a/c.md": "C", "x.txt": "X"})
    await watched.tracker.start()
    assert watched.told == [("a/c.md", "created", "codon-start"), ("b.md", "created", "codon-start")]
    assert watched.types == ["file.updated", "file.updated", "filetree.updated"]


async def test_without_globs_nothing_is_told(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    write(watched.root, {"a.md": "A"})
    async with watched.watching():
        watched.tracker.note(call("t", "Write", file_path="a.md"))
        watched.tracker.note(result("t"))
    await watched.tracker.finish()
    assert watched.types == []


async def test_a_tools_file_is_told_after_its_result_as_it_is_then(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "*.md")
    async with watched.watching():
        watched.tracker.note(call("t1", "Write", file_path=f"{watched.root}/a.md"))
        write(watched.root, {"a.md": "half"})
        write(watched.root, {"a.md": "whole"})
        watched.tracker.note(result("t1"))
        await watched.until(lambda: len(watched.told) == 1)
    await watched.tracker.finish()
    assert watched.told == [("a.md", "created", "tool_use")]
    (update,) = [payload for payload in watched.heard.payloads if isinstance(payload, FileUpdated)]
    assert update.content == "whole"
    assert watched.types[-1] == "filetree.updated"


async def test_a_second_write_that_bears_the_same_time_is_seen(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "*.md")
    write(watched.root, {"a.md": "1"})
    times = (watched.root / "a.md").stat()
    await watched.tracker.start()
    write(watched.root, {"a.md": "2"})
    os.utime(watched.root / "a.md", ns=(times.st_atime_ns, times.st_mtime_ns))
    await watched.tracker.finish()
    assert [action for _, action, _ in watched.told] == ["created", "modified"]


async def test_reading_a_file_is_no_update(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "*.md")
    write(watched.root, {"a.md": "A"})
    await watched.tracker.start()
    for use_id, tool in (("t1", "Read"), ("t2", "Write")):
        watched.tracker.note(call(use_id, tool, file_path="a.md"))
        watched.tracker.note(result(use_id))
    await watched.tracker.finish()
    assert watched.told == [("a.md", "created", "codon-start")]


async def test_what_no_tool_told_is_told_while_the_agent_runs(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**/*.md")
    write(watched.root, {"gone.md": "1", "old.md": "1"})
    async with watched.watching():
        write(watched.root, {"new/deep/a.md": "A", "old.md": "22"})
        (watched.root / "gone.md").unlink()
        await watched.until(lambda: len(watched.told) == 5)
        write(watched.root, {"new/deep/b.md": "in a folder that came later"})
        await watched.until(lambda: len(watched.told) == 6)
    assert sorted(watched.told[2:]) == [
        ("gone.md", "deleted", "watcher"),
        ("new/deep/a.md", "created", "watcher"),
        ("new/deep/b.md", "created", "watcher"),
        ("old.md", "modified", "watcher"),
    ]


async def test_what_changed_last_is_told_by_finish(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "*.md")
    async with watched.watching():
        pass
    write(watched.root, {"late.md": "1"})
    await watched.tracker.finish()
    assert watched.told == [("late.md", "created", "watcher")]
    await watched.tracker.finish()
    assert len(watched.told) == 1


async def test_a_removed_folder_takes_its_files_with_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "d")
    write(watched.root, {"d/a": "1", "d/e/b": "2"})
    async with watched.watching():
        shutil.rmtree(watched.root / "d")
        await watched.until(lambda: len(watched.told) == 4)
    assert watched.told[2:] == [("d/a", "deleted", "watcher"), ("d/e/b", "deleted", "watcher")]


async def test_what_gitignore_leaves_out_is_not_told_whoever_writes_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**")
    write(watched.root, {".gitignore": "*.log\nbuild/\n", "a.log": "", "build/x": "", "sub/.gitignore": "/secret"})
    await watched.tracker.start()
    watched.tracker.note(call("t", "Write", file_path="sub/secret"))
    write(watched.root, {"sub/secret": "1", "sub/deep/secret": "2", "build/y": ""})
    watched.tracker.note(result("t"))
    await watched.tracker.finish()
    assert [path for path, *_ in watched.told] == [".gitignore", "sub/.gitignore", "sub/deep/secret"]


async def test_neither_links_nor_the_data_nor_repositories_nor_pipes_are_files(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**")
    write(tmp_path, {"data/large": "not the agent's", "secret": "of the user"})
    (watched.root / "read_only_data_source").symlink_to(tmp_path / "data")
    (watched.root / "link").symlink_to(tmp_path / "secret")
    (watched.root / "folder").symlink_to(tmp_path)
    os.mkfifo(watched.root / "pipe")
    write(watched.root, {".git/config": "", "sub/.git/config": "", "sub/file": "1"})
    await watched.tracker.start()
    for path in ("link", "folder/secret", "read_only_data_source/large", ".git/config", "pipe"):
        watched.tracker.note(call(path, "Write", file_path=path))
        watched.tracker.note(result(path))
    await watched.tracker.finish()
    assert watched.told == [("sub/file", "created", "codon-start")]


async def test_odd_names_are_files_like_others(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**")
    names = sorted(['a\nb"c', "-rf", "ü 🎉", "'", "a\\b", "\t"])
    write(watched.root, dict.fromkeys(names, "x"))
    (watched.root / os.fsdecode(b"\xff")).write_text("x")
    await watched.tracker.start()
    assert [path for path, *_ in watched.told] == [*names, "\ufffd"]


async def test_a_folder_whose_name_is_no_text_disturbs_nothing(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**")
    write(watched.root, {os.fsdecode(b"d\xff/a"): "1"})
    async with watched.watching():
        write(watched.root, {"b": "2"})
        await watched.until(lambda: ("b", "created", "watcher") in watched.told)
    assert watched.told[0] == ("d\ufffd/a", "created", "codon-start")
    assert "info" not in watched.types


@pytest.mark.parametrize(("size", "inline"), [(256 * 1024, True), (256 * 1024 + 1, False), (3_000_000, False)])
async def test_content_is_inline_up_to_256_kib(tmp_path: Path, size: int, inline: bool) -> None:
    watched = Watched(tmp_path, "a")
    write(watched.root, {"a": "x" * size})
    await watched.tracker.start()
    data = watched.heard.payloads[0].dump()
    assert ("content" in data, "sha256" in data, data.get("bytes")) == (inline, not inline, None if inline else size)


async def test_bytes_that_are_no_text_are_told_by_hash(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "a")
    write(watched.root, {"a": b"\xff\xfe\x00"})
    await watched.tracker.start()
    assert watched.heard.payloads[0].dump()["bytes"] == 3


async def test_a_folder_that_cannot_be_read_is_named_once_and_its_files_are_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, "**")
    write(watched.root, {"a": "1", "closed/b": "2"})
    await watched.tracker.start()

    scandir = os.scandir

    def refuse(folder: Path) -> Any:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    await watched.tracker.finish()
    await watched.tracker.finish()
    assert [path for path, *_ in watched.told] == ["a", "closed/b"]
    (info,) = [payload.dump() for payload in watched.heard.payloads if payload.TYPE == "info"]
    assert info == {"message": "Files in closed are not watched: Permission denied", "code": "unreadable-folder"}


@pytest.mark.parametrize("grouped", [True, False])
async def test_without_notifications_changes_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    def fail(*_: object, **__: object) -> Any:
        error = OSError("no watches left")
        raise ExceptionGroup("of the library's tasks", [error]) if grouped else error

    monkeypatch.setattr(module, "awatch", fail)
    watched = Watched(tmp_path, "*.md")
    async with watched.watching():
        write(watched.root, {"a.md": "A"})
        await watched.until(lambda: len(watched.told) == 1)
    assert watched.told == [("a.md", "created", "watcher")]
    assert "no watches left" in next(p.dump()["message"] for p in watched.heard.payloads if p.TYPE == "info")


async def test_an_error_of_the_body_comes_out_as_it_was(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "**")
    await watched.tracker.start()
    with pytest.raises(KeyError):
        async with watched.tracker.watching():
            raise KeyError("mine")
