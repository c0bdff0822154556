"""Journals folded in steps: nothing is counted twice, and what is known so far can be asked for."""

from pathlib import Path

from tests.support.serving import execution, journal_of, lines

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
