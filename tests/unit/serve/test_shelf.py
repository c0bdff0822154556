"""Journals folded in steps: nothing is counted twice, and what is known so far can be asked for."""

from pathlib import Path

import pytest
from tests.support.serving import execution, journal_of, lines

from hankwatch.core.errors import RunNotFound
from hankwatch.serve.shelf import Shelf


def test_what_is_no_event_is_counted_once_however_often_one_looks(tmp_path: Path) -> None:
    root = execution(tmp_path, "1764522000000-a", lines("one", "two") + b"not json\n{torn")
    shelf = Shelf(tmp_path)
    for _ in range(3):
        followed = shelf.find("latest").followed
        assert (followed.bad_lines, followed.facts().bad_lines, followed.share_read) == (1, 1, 1.0)
    with journal_of(root).open("ab") as journal:
        journal.write(b"}\n" + lines("three", start=2))
    followed = shelf.find("latest").followed
    assert (followed.bad_lines, followed.facts().event_count) == (2, 3)


def test_a_long_journal_can_be_asked_for_while_it_is_read(tmp_path: Path) -> None:
    execution(tmp_path, "1764522000000-a", lines(*map(str, range(2_500))))
    shelf = Shelf(tmp_path)
    counts = []
    for _ in range(4):
        followed = shelf.find("latest", goes_on=lambda: False).followed
        counts.append((followed.facts().event_count, round(followed.share_read, 1)))
    assert counts == [(1_000, 0.4), (2_000, 0.8), (2_500, 1.0), (2_500, 1.0)]


@pytest.mark.parametrize("name", ["", ".", "..", "../b", "a/../a", "/", "\0", "x" * 300, "nope", "a/", "agentRoot"])
def test_only_the_name_of_an_execution_of_the_folder_names_one(tmp_path: Path, name: str) -> None:
    execution(tmp_path / "served", "a", lines("inside"))
    execution(tmp_path, "b", lines("outside"))
    with pytest.raises(RunNotFound):
        Shelf(tmp_path / "served").find(name)


def test_an_execution_that_is_served_alone_has_no_others_in_it(tmp_path: Path) -> None:
    root = execution(tmp_path, "a", lines("one"))
    execution(root, "agentRoot", lines("made", "by", "an agent"))
    shelf = Shelf(root)
    assert shelf.find("a").followed.facts().event_count == 1
    with pytest.raises(RunNotFound):
        shelf.find("agentRoot")
