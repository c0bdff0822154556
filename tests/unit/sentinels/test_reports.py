"""Reports as a projection of the journal: what is written, and how damage is made good."""

import errno
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hankwatch.core.errors import PathRefused
from hankwatch.events.envelope import Event, EventData, format_stamp
from hankwatch.sentinels import reports
from hankwatch.sentinels.report_files import ReportPlaces
from hankwatch.sentinels.reports import ReportFile, ReportFold, ReportWriter, rebuild, unescape_join

TEXTS = st.text("ab\n-", max_size=6)


class Desk:
    """One load of a sentinel with its report, over a journal that is a list."""

    def __init__(
        self,
        root: Path,
        *,
        kind: Literal["text", "jsonl"] = "text",
        last: bool = False,
        name: str = "notes.md",
        before: str = "",
    ) -> None:
        self.journal: list[Event] = []
        places = ReportPlaces(root / ".hankweave", root / "agentRoot")
        places.managed_dir.mkdir(exist_ok=True)
        log = places.resolve(name, "n")
        if before:
            log.path.parent.mkdir(parents=True)
            log.path.write_text(before)
        value = places.resolve("last.txt", "n") if last else None
        self.writer = ReportWriter(
            ReportFile(log, self.read, len(before)),
            value,
            kind,
            "\n---\n",
        )
        self.path = log.path
        self.root = root
        self.number = 0
        self.writer.loaded(self._write("sentinel.loaded", {"report": self.writer.plan().model_dump()}))

    def read(self, after: int, types: Collection[str]) -> Iterable[Event]:
        return [event for event in self.journal if event.cursor > after and event.type in types]

    def output(self, text: str, **more: Any) -> bool:
        self.number += 1
        triggered = self._write("sentinel.triggered", {"eventIds": [f"e{self.number}"]})
        data = {"triggerNumber": self.number, "content": text, "cost": 0.5, "cause": "match", **more}
        return self.writer.write(triggered.data, self._write("sentinel.output", data))

    def _write(self, type_name: str, data: EventData) -> Event:
        at_ms = 1_000 * len(self.journal)
        cursor = 100 * (len(self.journal) + 1)
        whole = {"sentinelId": "n", "codonId": "c", **data}
        self.journal.append(Event(f"id{cursor}", format_stamp(at_ms), type_name, whole, at_ms, cursor, 100))
        return self.journal[-1]


def test_an_entry_is_the_join_string_the_text_and_a_newline_also_the_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    desk.output("two")
    assert desk.path.read_text() == "\n---\none\n\n---\ntwo\n"


def test_escapes_of_a_join_string_are_read_left_to_right() -> None:
    assert unescape_join(r"\\n\n\t\r\x") == "\\n\n\t\r\\x"


def test_a_jsonl_entry_is_one_line_with_its_trigger(tmp_path: Path) -> None:
    desk = Desk(tmp_path, kind="jsonl", name="notes.jsonl")
    desk.output("one\ntwo", truncated=True)
    assert [json.loads(line) for line in desk.path.read_text().splitlines()] == [
        {
            "text": "one\ntwo",
            "timestamp": "1970-01-01T00:00:02.000Z",
            "sentinelId": "n",
            "triggerNumber": 1,
            "cause": "match",
            "eventIds": ["e1"],
            "cost": 0.5,
            "truncated": True,
        }
    ]


def test_the_last_value_is_replaced_by_each_output(tmp_path: Path) -> None:
    desk = Desk(tmp_path, last=True)
    desk.output("one")
    desk.output("two")
    assert (desk.path.parent / "last.txt").read_text() == "two"


def test_what_was_in_the_file_before_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path, before="older\n")
    desk.output("one")
    assert desk.path.read_text() == "older\n\n---\none\n"


@pytest.mark.parametrize("left", [0, 3, 8, 12])
def test_a_truncated_report_is_completed_from_the_journal(tmp_path: Path, left: int) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    os.truncate(desk.path, min(left, desk.path.stat().st_size - 1))
    assert desk.output("two") is False
    assert desk.path.read_text() == "\n---\none\n\n---\ntwo\n"


def test_a_report_truncated_into_what_was_before_gets_all_entries_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, before="older\n")
    desk.output("one")
    os.truncate(desk.path, 2)
    desk.output("two")
    desk.output("three")
    assert desk.path.read_text() == "ol\n---\none\n\n---\ntwo\n\n---\nthree\n"


def test_a_deleted_report_is_written_anew(tmp_path: Path) -> None:
    desk = Desk(tmp_path, before="older\n")
    desk.output("one")
    desk.path.unlink()
    assert desk.output("two") is False
    desk.output("three")
    assert desk.path.read_text() == "\n---\none\n\n---\ntwo\n\n---\nthree\n"


def test_a_report_that_someone_appended_to_goes_on_behind_it_and_says_so_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    with desk.path.open("a") as file:
        file.write("mine\n")
    assert desk.output("two") is True
    assert desk.output("three") is False
    assert desk.path.read_text() == "\n---\none\nmine\n\n---\ntwo\n\n---\nthree\n"


def test_a_shorter_report_with_other_content_is_kept_and_appended_to(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    desk.path.write_text("mine\n")
    assert desk.output("two") is True
    assert desk.path.read_text() == "mine\n\n---\ntwo\n"


def test_after_a_change_a_truncated_report_is_completed_behind_the_change(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.path.parent.mkdir(parents=True)
    desk.path.write_text("mine\n")
    desk.output("one")
    os.truncate(desk.path, 8)
    desk.output("two")
    assert desk.path.read_text() == "mine\n\n---\none\n\n---\ntwo\n"


def test_an_entry_that_could_not_be_written_comes_with_the_next(tmp_path: Path) -> None:
    desk = Desk(tmp_path, last=True)
    desk.output("one")
    elsewhere = tmp_path / "elsewhere"
    desk.path.rename(elsewhere)
    desk.path.symlink_to(elsewhere)
    with pytest.raises(PathRefused):
        desk.output("two")
    desk.path.unlink()
    desk.output("three")
    assert desk.path.read_text() == "\n---\none\n\n---\ntwo\n\n---\nthree\n"
    assert elsewhere.read_text() == "\n---\none\n"


def test_an_entry_that_the_disk_took_only_in_part_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    desk.output("one")

    def full(fd: int, data: bytes) -> None:
        os.write(fd, data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(reports, "write_all", full)
        with pytest.raises(OSError, match="No space"):
            desk.output("two")
    assert desk.path.read_text() == "\n---\none\n\n--"
    desk.output("three")
    assert desk.path.read_text() == "\n---\none\n\n---\ntwo\n\n---\nthree\n"


def test_catching_up_at_the_end_writes_what_failed_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path, last=True)
    desk.path.parent.mkdir(parents=True, exist_ok=True)
    desk.path.mkdir()
    with pytest.raises(PathRefused):
        desk.output("one")
    desk.path.rmdir()
    desk.writer.catch_up()
    assert desk.path.read_text() == "\n---\none\n"
    assert (desk.path.parent / "last.txt").read_text() == "one"


def test_catching_up_leaves_a_whole_report_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    before = desk.path.stat()
    desk.writer.catch_up()
    assert desk.path.stat().st_mtime_ns == before.st_mtime_ns


def test_rebuilding_gives_the_same_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path, before="older\n", last=True)
    desk.output("one")
    desk.output("two")
    wanted = desk.path.read_text()
    desk.path.write_text("older\nspoiled")
    (desk.path.parent / "last.txt").unlink()
    assert [(done.entries, done.error) for done in rebuild(desk.journal, tmp_path)] == [(2, None), (1, None)]
    assert desk.path.read_text() == wanted
    assert (desk.path.parent / "last.txt").read_text() == "two"


def test_rebuilding_twice_changes_nothing_also_after_the_file_was_deleted_during_the_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path, before="older\n")
    desk.output("one")
    desk.path.unlink()
    desk.output("two")
    wanted = desk.path.read_text()
    for _ in range(2):
        rebuild(desk.journal, tmp_path)
        assert desk.path.read_text() == wanted


def test_rebuilding_leaves_what_was_there_when_there_is_no_entry(tmp_path: Path) -> None:
    desk = Desk(tmp_path, before="precious\nnotes\n")
    rebuild(desk.journal, tmp_path)
    assert desk.path.read_text() == "precious\nnotes\n"


@given(before=TEXTS, texts=st.lists(TEXTS, max_size=3), spoiled=TEXTS)
def test_rebuilding_keeps_what_was_there_whatever_it_is_and_twice_is_once(
    tmp_path_factory: pytest.TempPathFactory, before: str, texts: list[str], spoiled: str
) -> None:
    root = tmp_path_factory.mktemp("run")
    desk = Desk(root, before=before)
    for text in texts:
        desk.output(text)
    entries = "".join(f"\n---\n{text}\n" for text in texts)
    assume(before + spoiled != entries)  # as after a deletion: it is left as it is
    desk.path.parent.mkdir(parents=True, exist_ok=True)
    desk.path.write_text(before + spoiled)
    for _ in range(2):
        rebuild(desk.journal, root)
        assert desk.path.read_text() == before + entries


def test_rebuilding_a_report_that_is_a_hard_link_takes_it_from_the_other_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path, last=True)
    desk.output("one")
    other = tmp_path / "other"
    other.write_text("another file")
    desk.path.unlink()
    desk.path.hardlink_to(other)
    assert [done.error for done in rebuild(desk.journal, tmp_path)] == [None, None]
    assert other.read_text() == "another file"
    assert desk.path.read_text() == "\n---\none\n"


def test_an_entry_for_a_report_that_became_another_file_comes_once_it_is_one_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    other = tmp_path / "other"
    other.write_text("another file")
    desk.path.unlink()
    desk.path.hardlink_to(other)
    with pytest.raises(PathRefused, match="hard link"):
        desk.output("two")
    desk.path.unlink()
    desk.writer.catch_up()
    assert desk.path.read_text() == "\n---\none\n\n---\ntwo\n"
    assert other.read_text() == "another file"


def test_rebuilding_one_sentinel_leaves_the_others_files_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.output("one")
    assert rebuild(desk.journal, tmp_path, "someone-else") == []


def test_rebuilding_never_leaves_the_execution_directory(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.journal[0].data["report"]["logFile"] = "../outside.md"
    desk.output("one")
    (done,) = rebuild(desk.journal, tmp_path)
    assert done.error is not None
    assert not (tmp_path.parent / "outside.md").exists()


def test_an_output_of_an_unknown_load_adds_nothing() -> None:
    data = {"sentinelId": "n", "codonId": "c", "triggerNumber": 1, "content": "x", "cost": None}
    assert ReportFold().feed(Event("i", format_stamp(0), "sentinel.output", data, 0)) is None
