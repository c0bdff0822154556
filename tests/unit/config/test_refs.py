"""Portable paths (spec sentinels 1, reference 2.6, bugs A16)."""

import os
from pathlib import Path

import pytest

from hankwatch.config.refs import check_ref, read_file, read_ref, resolve_ref
from hankwatch.core.errors import PathRefused


@pytest.fixture
def hank(tmp_path: Path) -> Path:
    root = tmp_path / "hank"
    (root / "sentinels").mkdir(parents=True)
    (root / "prompts").mkdir()
    (root / "prompts" / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    (tmp_path / "outside.md").write_text("secret")
    return root


@pytest.mark.parametrize("ref", ["a.md", "./a.md", "../a.md", "a/../b", "a b/ü.md", "..a", "a%20b"])
def test_a_relative_posix_path_is_well_spelled(ref: str) -> None:
    assert check_ref(ref) is None


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("/etc/passwd", "absolute"),
        ("C:\\x", "backslash"),
        ("C:x", "drive"),
        ("\\\\srv\\s", "backslash"),
        ("a\0b", "NUL"),
        ("a\nb", "control"),
        ("~/x", "~"),
        ("%2e%2e/x", "percent"),
        ("x" * 300, "too long"),
        ("a/" * 3000, "too long"),
        ("\ud800", "UTF-8"),
    ],
)
def test_any_other_spelling_is_refused_with_its_reason(ref: str, says: str) -> None:
    assert says in str(check_ref(ref))


def test_a_ref_resolves_from_the_directory_of_its_file(hank: Path) -> None:
    path = resolve_ref("../prompts/./a.md", base=hank / "sentinels", root=hank)
    assert path == hank / "prompts" / "a.md"


@pytest.mark.parametrize("ref", ["../../outside.md", "../../hank/prompts/a.md", "a/../../../x", "..", "."])
def test_a_ref_never_leaves_the_hank_directory_at_any_step(hank: Path, ref: str) -> None:
    with pytest.raises(PathRefused):
        resolve_ref(ref, base=hank / "sentinels", root=hank)
    with pytest.raises(PathRefused):
        read_ref(ref, base=hank / "sentinels", root=hank)


@pytest.mark.parametrize("ref", ["link.md", "links/a.md"])
def test_no_component_may_be_a_symlink(hank: Path, ref: str) -> None:
    (hank / "link.md").symlink_to(hank / "prompts" / "a.md")
    (hank / "links").symlink_to(hank / "prompts")
    with pytest.raises(PathRefused, match="symbolic link"):
        resolve_ref(ref, base=hank, root=hank)
    with pytest.raises(PathRefused, match="symbolic link"):
        read_ref(ref, base=hank, root=hank)


def test_the_hank_directory_itself_may_be_reached_through_a_link(hank: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(hank)
    assert read_ref("prompts/a.md", base=tmp_path / "alias", root=tmp_path / "alias")


def test_bom_and_crlf_are_taken_off(hank: Path) -> None:
    assert read_ref("prompts/a.md", base=hank, root=hank) == "one\ntwo"


def test_a_fifo_is_refused_and_not_waited_for(hank: Path) -> None:
    os.mkfifo(hank / "pipe")
    with pytest.raises(PathRefused, match="not a regular file"):
        read_ref("pipe", base=hank, root=hank)


@pytest.mark.parametrize(
    ("ref", "says"), [("nope.md", "does not exist"), ("prompts", "directory"), ("prompts/", "dir")]
)
def test_only_a_file_that_exists_is_read(hank: Path, ref: str, says: str) -> None:
    with pytest.raises(PathRefused, match=says):
        read_ref(ref, base=hank, root=hank)


def test_a_file_named_by_the_user_may_be_a_link(hank: Path) -> None:
    (hank / "link.md").symlink_to(hank / "prompts" / "a.md")
    assert read_file(hank / "link.md") == "one\ntwo"
