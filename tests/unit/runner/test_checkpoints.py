"""Checkpoints in a shadow repository: what they hold, how they are found again, what they leave alone."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkpoints import AT_MS, EVERYTHING, git, open_checkpoints, save
from tests.support.workspaces import contents, execution, write

from hankwatch.core.errors import CheckpointFailed, GitMissing
from hankwatch.runner import checkpoints as module
from hankwatch.runner.checkpoints import Key
from hankwatch.runner.globs import Globs
from hankwatch.runner.inside import open_inside


def make_repository(folder: Path) -> None:
    """An agent's own, with everything committed."""
    commit = ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "own"]
    for command in (["init", "-q"], ["add", "-A"], commit):
        subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True)


async def test_a_checkpoint_is_a_commit_on_the_runs_branch_with_the_contracts_subject(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a.md": "A", "b.txt": "B"})
    checkpoints = await open_checkpoints(layout)
    await checkpoints.begin("r-1")
    saved = await save(checkpoints, "one#0", globs=Globs(["*.md"]))
    assert git(layout, "log", "--format=%H %s %an", "run-r-1").strip() == (
        f"{saved.sha} completed:one#0 [run:r-1] Codon one#0 hankwatch"
    )
    assert list(await checkpoints.files(saved.sha)) == ["a.md"]
    assert git(layout, "show", "-s", "--format=%ct", saved.sha).strip() == str(AT_MS // 1000)
    assert git(layout, "symbolic-ref", "HEAD").strip() == "refs/heads/run-r-1"
    assert saved.is_new


async def test_a_checkpoint_is_made_though_nothing_changed(tmp_path: Path) -> None:
    checkpoints = await open_checkpoints(execution(tmp_path))
    first, second = await save(checkpoints, "one"), await save(checkpoints, "two")
    assert first.sha != second.sha
    assert await checkpoints.files(second.sha) == {}


async def test_a_checkpoint_whose_transition_was_lost_is_recognised_by_another_process(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    first = await save(await open_checkpoints(layout))
    write(layout.agent_root, {"a": "2"})
    again = await open_checkpoints(layout)
    second = await save(again)
    assert (second.sha, second.is_new) == (first.sha, False)
    other = [await save(again, attempt=2), await save(again, status="exit"), await save(again, run="r-2")]
    assert len({first.sha, *(saved.sha for saved in other)}) == 4


async def test_the_list_names_each_checkpoint_of_the_run_only(tmp_path: Path) -> None:
    checkpoints = await open_checkpoints(execution(tmp_path))
    await save(checkpoints, "one", "rig-setup")
    last = await save(checkpoints, "one", "exit")
    await checkpoints.begin("r-2", from_sha=last.sha)
    await save(checkpoints, "two", run="r-2")
    listed = (await checkpoints.listing("r-1")).dump()
    assert listed["currentBranch"] == "run-r-1"
    assert [(row["checkpointType"], row["status"]) for row in listed["checkpoints"]] == [
        ("rig-setup", "rig-setup"),
        ("skipped", "exit"),
    ]
    assert listed["checkpoints"][1] == {
        "codonId": "one",
        "codonName": "Codon one",
        "checkpointType": "skipped",
        "sha": last.sha,
        "status": "exit",
        "timestamp": "2027-01-15T08:00:00.123Z",
    }
    fresh = await open_checkpoints(execution(tmp_path / "other"))
    assert (await fresh.listing("unknown")).checkpoints == []
    assert [row.codon_id for row in (await checkpoints.listing("r-2")).checkpoints] == ["two"]


async def test_a_continuation_follows_the_checkpoint_it_continues(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    checkpoints = await open_checkpoints(layout)
    first = await save(checkpoints)
    for _ in range(2):
        await checkpoints.begin("r-2", from_sha=first.sha)
    second = await save(checkpoints, run="r-2")
    assert git(layout, "show", "-s", "--format=%P", second.sha).strip() == first.sha


async def test_odd_names_links_modes_and_bytes_come_back_as_they_were(tmp_path: Path) -> None:
    odd = ['new\nline "quoted"', "-rf", "ü 🎉", "tab\t", "cr\r", "back\\slash", "'", ":(glob)x", "a b/ c ", "*?[x]"]
    layout = execution(tmp_path, {name: name for name in odd})
    root = layout.agent_root
    write(root, {"crlf": b"a\r\nb\n", "bytes": bytes(range(256)), ".gitattributes": "* text=auto eol=lf ident\n"})
    write(root, {"id": "$Id$", os.fsdecode(b"no\xfftext"): "x", "git~1": "x", "large": b"\0x" * 3_000_000})
    (root / "tool").write_text("#!/bin/sh")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("/etc/passwd")
    (root / "dead").symlink_to("nowhere\n")
    (root / "folder").symlink_to("a b")
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints)
    files = await checkpoints.files(saved.sha)
    assert saved.unreadable == ()
    assert files["tool"].mode == "100755"
    assert files["link"].mode == files["folder"].mode == "120000"
    await checkpoints.export(saved.sha, files, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(root)
    assert (tmp_path / "out/bytes").read_bytes() == bytes(range(256))
    assert (tmp_path / "out/large").read_bytes() == (root / "large").read_bytes()
    assert (tmp_path / "out/tool").stat().st_mode & stat.S_IXUSR


async def test_an_export_writes_only_what_is_asked_and_leaves_the_workspace(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1", "d/b": "2"})
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints)
    write(layout.agent_root, {"a": "changed", "c": "new"})
    await checkpoints.export(saved.sha, ["d/b"], tmp_path / "out")
    await checkpoints.export(saved.sha, [], tmp_path / "none")
    assert contents(tmp_path / "out") == {"d/b": "2"}
    assert contents(tmp_path / "none") == {}
    assert contents(layout.agent_root) == {"a": "changed", "c": "new", "d/b": "2"}


async def test_gitignore_is_respected_and_what_is_forced_by_nobody_stays_out(tmp_path: Path) -> None:
    layout = execution(
        tmp_path, {".gitignore": "*.log\n", "a.log": "", "b": "", "node_modules/x": "", "c/.gitignore": "*"}
    )
    write(layout.agent_root, {"node_modules/.gitignore": "*", "c/d": ""})
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints)
    assert sorted(await checkpoints.files(saved.sha)) == [".gitignore", "b"]


async def test_the_agents_own_repositories_are_untouched_and_in_no_checkpoint(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1", "nested/b": "2"})
    root = layout.agent_root
    make_repository(root)
    make_repository(root / "nested")
    before = contents(root)
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints)
    files = await checkpoints.files(saved.sha)
    assert sorted(files) == ["a", "nested/b"]
    assert {blob.mode for blob in files.values()} == {"100644"}
    assert contents(root) == before


async def test_what_was_deleted_or_changed_its_kind_is_so_in_the_next_checkpoint(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1", "b/c": "2", "d": "3", "e": "4"})
    root = layout.agent_root
    checkpoints = await open_checkpoints(layout)
    first = await save(checkpoints)
    for name in ("a", "b/c", "d", "e"):
        (root / name).unlink()
    (root / "b").rmdir()
    write(root, {"a/now": "a folder", "b": "a file"})
    (root / "d").symlink_to("b")
    second = await save(checkpoints, "two")
    files = await checkpoints.files(second.sha)
    assert {name: blob.mode for name, blob in files.items()} == {"a/now": "100644", "b": "100644", "d": "120000"}
    assert sorted(await checkpoints.files(first.sha)) == ["a", "b/c", "d", "e"]


async def test_a_folder_that_cannot_be_read_is_named_and_kept_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = execution(tmp_path, {"a": "1", "closed/b": "2"})
    checkpoints = await open_checkpoints(layout)
    await save(checkpoints)
    scandir = os.scandir

    def refuse(folder: Path) -> Any:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    saved = await save(checkpoints, "two")
    assert [(hole.path, hole.error) for hole in saved.unreadable] == [("closed", "Permission denied")]
    assert sorted(await checkpoints.files(saved.sha)) == ["a", "closed/b"]


async def test_a_file_that_cannot_be_read_is_named_and_the_rest_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = execution(tmp_path, {"a": "1", "secret": "2"})

    @contextmanager
    def refuse(root: Path, path: str) -> Iterator[int]:
        if path == "secret":
            raise PermissionError(13, "Permission denied")
        with open_inside(root, path) as fd:
            yield fd

    monkeypatch.setattr(module, "open_inside", refuse)
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints)
    assert [hole.path for hole in saved.unreadable] == ["secret"]
    assert sorted(await checkpoints.files(saved.sha)) == ["a"]


async def test_without_git_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(GitMissing) as caught:
        await open_checkpoints(execution(tmp_path), {"PATH": str(tmp_path)})
    assert caught.value.hint is not None
    assert "install git" in caught.value.hint


async def test_a_git_that_goes_missing_later_fails_that_checkpoint(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    await open_checkpoints(layout)
    with pytest.raises(GitMissing):
        await save(await open_checkpoints(layout, {"PATH": str(tmp_path)}))


async def test_a_failing_git_is_told_with_its_own_words(tmp_path: Path) -> None:
    checkpoints = await open_checkpoints(execution(tmp_path))
    with pytest.raises(CheckpointFailed, match="Not a valid object name"):
        await checkpoints.files("0123456789")


async def test_neither_config_nor_hooks_nor_identity_of_the_user_matter(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(
        home, {".gitconfig": "[commit]\n gpgSign = true\n[user]\n useConfigOnly = true\n[core]\n hooksPath = hooks\n"}
    )
    layout = execution(tmp_path, {"a": "1"})
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_INDEX_FILE": "/nonexistent",
        "GIT_DIR": "/nonexistent",
    }
    checkpoints = await open_checkpoints(layout, environ)
    write(layout.managed / "checkpoints/.hankweavecheckpoints", {"hooks/reference-transaction": "#!/bin/sh\nexit 1\n"})
    (layout.managed / "checkpoints/.hankweavecheckpoints/hooks/reference-transaction").chmod(0o755)
    assert (await save(checkpoints)).is_new


async def test_a_change_within_one_second_is_seen_though_another_file_was_removed(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1", "gone": "x"})
    path, long_ago = layout.agent_root / "a", (1_600_000_000, 1_600_000_000)
    os.utime(path, long_ago)
    checkpoints = await open_checkpoints(layout)
    await save(checkpoints)
    # As if the index had been written in the second in which the file changed, and again in the same second.
    os.utime(layout.managed / "checkpoints/.hankweavecheckpoints/index", long_ago)
    write(layout.agent_root, {"a": "2"})
    os.utime(path, long_ago)
    (layout.agent_root / "gone").unlink()
    saved = await save(checkpoints, "two")
    await checkpoints.export(saved.sha, ["a"], tmp_path / "out")
    assert contents(tmp_path / "out") == {"a": "2"}


async def test_a_cancelled_checkpoint_does_not_lock_the_next(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1"})
    checkpoints = await open_checkpoints(layout)
    (layout.managed / "checkpoints/.hankweavecheckpoints/index.lock").touch()
    assert (await save(checkpoints)).is_new


async def test_what_a_killed_git_left_locked_or_broken_does_not_matter(tmp_path: Path) -> None:
    layout = execution(tmp_path, {"a": "1", "b": "2"})
    await save(await open_checkpoints(layout))
    folder = layout.managed / "checkpoints" / ".hankweavecheckpoints"
    for lock in ("index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/run-r-1.lock"):
        (folder / lock).touch()
    (folder / "index").write_bytes(b"DIRC garbage")
    checkpoints = await open_checkpoints(layout)
    saved = await save(checkpoints, "two")
    assert sorted(await checkpoints.files(saved.sha)) == ["a", "b"]


async def test_a_name_of_several_lines_is_one_line_of_the_subject(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    checkpoints = await open_checkpoints(layout)
    key = Key("r-1", "ü#0", 1, "error")
    saved = await checkpoints.save(key, "two\nlines \x1b[31m" + "x" * 500, EVERYTHING, AT_MS)
    (subject,) = git(layout, "show", "-s", "--format=%s", saved.sha).splitlines()
    assert subject.startswith("error:ü#0 [run:r-1] two lines xxx")
    assert (await (await open_checkpoints(layout)).of_run("r-1"))[0].key == key
