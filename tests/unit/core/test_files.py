"""Files in folders that an agent writes to as well: whatever it puts there, nothing waits and no other file changes."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hankwatch.core import files
from hankwatch.core.files import appending, open_regular, reading, replace_file


@pytest.mark.parametrize("prepare", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_regular_files_are_opened_and_nothing_is_waited_for(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    path = tmp_path / "it"
    prepare(path)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names suffice
    for opening in (reading, appending, lambda path: open_regular(path, os.O_RDWR)):
        with pytest.raises(OSError, match=r"egular|irectory|symbolic|No such device"):
            opening(path)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_what_is_read_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"content")
    (tmp_path / "link").symlink_to("it")
    with reading(tmp_path / "link") as file:
        assert file.read() == b"content"


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_nothing_is_appended_to_another_file(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    (tmp_path / "other").write_bytes(b"other")
    make(tmp_path / "it", tmp_path / "other")
    with pytest.raises(OSError, match=r"symbolic|hard links"):
        appending(tmp_path / "it")
    assert (tmp_path / "other").read_bytes() == b"other"


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_a_link_is_replaced_and_what_it_led_to_stays(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    (tmp_path / "other").write_bytes(b"other")
    make(tmp_path / "it", tmp_path / "other")
    replace_file(tmp_path / "it", b"new", durable=True)
    assert (tmp_path / "it").read_bytes() == b"new"
    assert (tmp_path / "other").read_bytes() == b"other"


def test_names_of_new_files_are_never_twice_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    rename = os.rename

    def noted(old: str, new: str, **folders: int) -> None:
        names.append(old)
        rename(old, new, **folders)

    monkeypatch.setattr(os, "rename", noted)
    for _ in range(20):
        replace_file(tmp_path / "it", b"new")
    assert len(set(names)) == 20


@pytest.mark.parametrize("prepare", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), Path.touch])
def test_a_name_that_was_guessed_all_the_same_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(files, "token_hex", lambda _: "guessed")
    prepare(tmp_path / ".guessed.tmp")
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "it", b"new")
    assert [path.name for path in tmp_path.iterdir()] == [".guessed.tmp"]


def test_what_could_not_be_replaced_stands_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "it" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory") as raised:
        replace_file(tmp_path / "it", b"new")
    assert raised.value.errno == errno.EISDIR
    assert [path.name for path in tmp_path.iterdir()] == ["it"]
