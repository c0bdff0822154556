"""Where reports may be, and that no link is followed on the way (bugs A16)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hankwatch.core.errors import PathRefused
from hankwatch.core.files import write_all
from hankwatch.sentinels.report_files import (
    ReportPath,
    ReportPlaces,
    default_name,
    opened,
    recorded_path,
    replace,
)


@pytest.fixture
def places(tmp_path: Path) -> ReportPlaces:
    (tmp_path / ".hankweave").mkdir()
    (tmp_path / "agentRoot").mkdir()
    return ReportPlaces(tmp_path / ".hankweave", tmp_path / "agentRoot")


def append(path: ReportPath, text: str) -> None:
    with opened(path, create=True) as fd:
        assert fd is not None
        write_all(fd, text.encode())


def test_a_bare_name_goes_to_the_sentinels_own_folder(places: ReportPlaces) -> None:
    assert places.resolve("notes.md", "narrator").shown == ".hankweave/sentinels/outputs/narrator/notes.md"


def test_a_name_with_a_slash_goes_into_the_agents_root(places: ReportPlaces) -> None:
    assert places.resolve("reports/notes.md", "narrator").shown == "agentRoot/reports/notes.md"
    assert places.resolve("./a/../notes.md", "narrator").shown == "agentRoot/notes.md"


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/abs.md",
        "a/../../b",
        "..",
        "../x.md",
        "C:\\x",
        "\\\\srv\\s",
        "%2e%2e/x.md",
        "a\0b",
        "x" * 300,
        "",
        ".",
        "reports/",
        "./.hankweave/events/events.jsonl",
        "a/../.hankweave/x.md",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(places: ReportPlaces, name: str) -> None:
    with pytest.raises(PathRefused):
        places.resolve(name, "narrator")


def test_unsafe_characters_of_a_default_name_become_dashes() -> None:
    assert default_name("narrator", "build#2/x", 17, ".md") == "narrator-build-2-x-17.md"


def test_folders_are_made_and_entries_appended(places: ReportPlaces) -> None:
    path = places.resolve("reports/deep/notes.md", "n")
    append(path, "one")
    append(path, "two")
    assert path.path.read_text() == "onetwo"


@pytest.mark.parametrize("link", ["reports", "reports/notes.md"])
def test_a_symlink_anywhere_on_the_way_is_refused(places: ReportPlaces, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.md").touch()
    place = places.agent_root / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if link == "reports" else outside / "notes.md")
    with pytest.raises(PathRefused, match="link"):
        append(places.resolve("reports/notes.md", "n"), "x")
    assert (outside / "notes.md").read_text() == ""


def test_a_hard_link_to_another_file_is_refused_before_anything_is_added_to_it(places: ReportPlaces) -> None:
    other = places.agent_root / "other"
    other.write_text("kept")
    (places.agent_root / "notes.md").hardlink_to(other)
    with pytest.raises(PathRefused, match="hard link"):
        append(places.resolve("./notes.md", "n"), "x")
    assert other.read_text() == "kept"


def test_a_fifo_is_refused_without_waiting(places: ReportPlaces) -> None:
    os.mkfifo(places.agent_root / "pipe")
    with pytest.raises(PathRefused):
        append(places.resolve("./pipe", "n"), "x")


def test_a_missing_file_is_not_made_by_looking(places: ReportPlaces) -> None:
    path = places.resolve("a/b.md", "n")
    with opened(path, create=False) as fd:
        assert fd is None
    assert not (places.agent_root / "a").exists()


def test_replacing_leaves_the_new_content_and_nothing_else(places: ReportPlaces) -> None:
    path = places.resolve("last.txt", "n")
    replace(path, b"one")
    replace(path, b"two")
    assert path.path.read_bytes() == b"two"
    assert [file.name for file in path.path.parent.iterdir()] == ["last.txt"]


@pytest.mark.parametrize("prepare", [os.mkfifo, os.mkdir])
def test_no_name_that_can_be_foreseen_stands_in_the_way_of_replacing(
    places: ReportPlaces, prepare: Callable[[Path], None]
) -> None:
    path = places.resolve("./last.md", "n")
    for name in (".last.md.tmp", f".last.md.{os.getpid()}.tmp", "last.md.tmp"):
        prepare(places.agent_root / name)
    replace(path, b"new")
    assert path.path.read_bytes() == b"new"


def test_the_longest_name_a_file_may_have_can_be_replaced(places: ReportPlaces) -> None:
    path = ReportPath(places.agent_root, ("ä" * 127,), "long")
    replace(path, b"new")
    assert path.path.read_bytes() == b"new"


def test_replacing_a_symlink_does_not_touch_its_target(places: ReportPlaces, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    path = places.resolve("./last.txt", "n")
    path.path.symlink_to(target)
    replace(path, b"new")
    assert target.read_text() == "kept"


@pytest.mark.parametrize("shown", ["/etc/passwd", "../x", "a/../../x", ""])
def test_a_journal_cannot_name_a_file_outside_its_execution(tmp_path: Path, shown: str) -> None:
    with pytest.raises(PathRefused):
        recorded_path(tmp_path, shown)
