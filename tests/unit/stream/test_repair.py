"""The situations of a torn last line: whatever was cut, nothing else is lost and nothing welds."""

from pathlib import Path

import pytest
from tests.support.streams import Bench, events, info, message, write_journal

from hankwatch.stream import Journal, JournalReader, Repair


def messages(path: Path) -> list[str]:
    return [message(event) for event in JournalReader(path).read()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_whole_journal_needs_no_repair(path: Path) -> None:
    write_journal(path, "a", "b")
    journal = Journal.open(path)
    assert journal.repaired is None
    journal.close()


def test_a_tail_torn_at_any_byte_is_mended_and_the_next_event_is_readable(path: Path) -> None:
    write_journal(path, "a", "b", "ü\u2028 last")
    content = path.read_bytes()
    last = content.rfind(b"\n", 0, -1) + 1
    for cut in range(last, len(content)):
        for side in path.parent.glob("*.torn-*"):
            side.unlink()
        path.write_bytes(content[:cut])
        journal = Journal.open(path)
        journal.append(events("next"))
        journal.close()
        tail = content[last:cut]
        if not tail:
            assert journal.repaired is None
        elif tail == content[last:-1]:
            assert journal.repaired == Repair(len(tail), "newline")
            assert messages(path) == ["a", "b", "ü\u2028 last", "next"]
            continue
        else:
            assert journal.repaired == Repair(len(tail), "moved", f"events.jsonl.torn-{last}")
            assert path.with_name(f"events.jsonl.torn-{last}").read_bytes() == tail
        assert messages(path) == ["a", "b", "next"]


def test_a_fragment_that_is_the_whole_file_is_moved(path: Path) -> None:
    path.write_bytes(b'{"id":')
    journal = Journal.open(path)
    assert journal.repaired == Repair(6, "moved", "events.jsonl.torn-0")
    assert journal.size_bytes == 0
    journal.close()


def test_a_fragment_longer_than_a_window_is_moved_whole(path: Path) -> None:
    write_journal(path, "a")
    fragment = b'{"id":"' + b"x" * 200_000
    with path.open("ab") as file:
        file.write(fragment)
    journal = Journal.open(path)
    journal.close()
    assert journal.repaired is not None
    assert journal.repaired.side_file is not None
    assert path.with_name(journal.repaired.side_file).read_bytes() == fragment
    assert messages(path) == ["a"]


@pytest.mark.parametrize("tail", [b"\n", b"\n\n", b"\r\n"])
def test_an_empty_line_at_the_end_is_no_damage(path: Path, tail: bytes) -> None:
    write_journal(path, "a")
    with path.open("ab") as file:
        file.write(tail)
    journal = Journal.open(path)
    journal.append(events("b"))
    journal.close()
    assert journal.repaired is None
    assert messages(path) == ["a", "b"]


def test_a_fragment_followed_by_an_empty_line_is_one_bad_line(path: Path) -> None:
    write_journal(path, "a")
    with path.open("ab") as file:
        file.write(b'{"id":"to\n\n')
    journal = Journal.open(path)
    journal.append(events("b"))
    journal.close()
    reader = JournalReader(path)
    assert [message(event) for event in reader.read()] == ["a", "b"]
    assert reader.bad_lines == 1


@pytest.mark.parametrize("tail", [b"\0" * 40, b"17", b"null", b"[" * 100_000, b"\xff\xfe", b" "])
def test_a_tail_that_is_no_object_is_moved(path: Path, tail: bytes) -> None:
    write_journal(path, "a")
    with path.open("ab") as file:
        file.write(tail)
    journal = Journal.open(path)
    journal.close()
    assert journal.repaired is not None
    assert journal.repaired.action == "moved"
    assert messages(path) == ["a"]


def test_side_files_are_never_overwritten(path: Path) -> None:
    path.write_bytes(b"first")
    Journal.open(path).close()
    path.write_bytes(b"second")
    Journal.open(path).close()
    assert path.with_name("events.jsonl.torn-0").read_bytes() == b"first"
    assert path.with_name("events.jsonl.torn-0-2").read_bytes() == b"second"


def test_the_stream_tells_of_the_repair(path: Path) -> None:
    write_journal(path, "a")
    with path.open("ab") as file:
        file.write(b'{"id":"torn')
    bench = Bench(Journal.open(path))
    bench.stream.emit(info("b"))
    bench.stream.close()
    a, repaired, b = JournalReader(path).read()
    assert (message(a), repaired.type, message(b)) == ("a", "journal.repaired", "b")
    assert repaired.data == {"bytes": 11, "action": "moved", "sideFile": f"events.jsonl.torn-{a.cursor}"}
