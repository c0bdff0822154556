import gzip
from pathlib import Path

import orjson
import pytest
from tests.support.streams import events, message, write_journal

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import UsageError
from hankwatch.stream import JournalReader


def lines(*texts: str) -> list[bytes]:
    return [orjson.dumps(event.envelope()) for event in events(*texts)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_reading_gives_the_events_with_the_cursors_they_were_written_with(path: Path) -> None:
    written = write_journal(path, "a", "b")
    assert [(e.id, e.timestamp, e.at_ms, e.data, e.cursor, e.size_bytes) for e in JournalReader(path).read()] == [
        (e.id, e.timestamp, e.at_ms, e.data, e.cursor, e.size_bytes) for e in written
    ]


def test_after_a_cursor_comes_the_next_event(path: Path) -> None:
    first, *_ = write_journal(path, "a", "b", "c")
    assert [message(event) for event in JournalReader(path).read(first.cursor)] == ["b", "c"]


def test_the_limit_counts_the_events_of_the_wanted_types(path: Path) -> None:
    batch = events("a", "b", "c")
    batch[1].type = "error"
    path.write_bytes(b"".join(orjson.dumps(event.envelope()) + b"\n" for event in batch))
    assert [message(event) for event in JournalReader(path).read(limit=2, types={"info"})] == ["a", "c"]
    assert list(JournalReader(path).read(limit=0)) == []


def test_beyond_the_end_there_is_nothing(path: Path) -> None:
    write_journal(path, "a")
    assert list(JournalReader(path).read(after=10_000)) == []


def test_bad_lines_are_skipped_and_counted_wherever_they_are(path: Path) -> None:
    a, b = lines("a", "b")
    path.write_bytes(b"\n".join([b"{}", b"junk", a, b"\xff\x00", b, b"[]", b""]))
    reader = JournalReader(path)
    assert [message(event) for event in reader.read()] == ["a", "b"]
    assert reader.bad_lines == 4


def test_bom_and_carriage_returns_are_accepted(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([*lines("a", "b"), b""]))
    reader = JournalReader(path)
    read = list(reader.read())
    assert [message(event) for event in read] == ["a", "b"]
    assert [event.id for event in reader.last(2)] == [event.id for event in read]
    assert reader.bad_lines == 0
    assert read[-1].cursor == path.stat().st_size


def test_tolerant_reading_is_counted_by_what_it_had_to_help_with(path: Path) -> None:
    [line] = lines("a")
    path.write_bytes(line.replace(b'"info"', b'"their.own"') + b"\n" + line.replace(b'"message"', b'"text"') + b"\n")
    reader = JournalReader(path)
    assert len(list(reader.read())) == 2
    assert reader.flags == {"unknown-type": 1, "payload-misfit": 1}


def test_lines_end_at_line_feeds_only(path: Path) -> None:
    text = "one\u2028two\u0085three\x0bfour"
    path.write_bytes(b"".join(line + b"\n" for line in lines(text, "b")))
    assert [message(event) for event in JournalReader(path).read()] == [text, "b"]


def test_a_whole_event_without_newline_counts_and_a_torn_one_does_not(path: Path) -> None:
    a, b = lines("a", "b")
    path.write_bytes(a + b"\n" + b)
    reader = JournalReader(path)
    assert [message(event) for event in reader.read()] == ["a", "b"]
    path.write_bytes(a + b"\n" + b[:-1])
    assert [message(event) for event in reader.read()] == ["a"]
    assert [message(event) for event in reader.last(5)] == ["a"]
    assert reader.bad_lines == 0


def test_the_last_events_come_oldest_first(path: Path) -> None:
    write_journal(path, "a", "b", "c")
    assert [message(event) for event in JournalReader(path).last(2)] == ["b", "c"]
    assert [message(event) for event in JournalReader(path).last(9)] == ["a", "b", "c"]
    assert JournalReader(path).last(0) == []


def test_bad_lines_do_not_count_among_the_last(path: Path) -> None:
    a, b = lines("a", "b")
    path.write_bytes(b"\n".join([a, b"junk", b, b"junk", b""]))
    assert [message(event) for event in JournalReader(path).last(2)] == ["a", "b"]


def test_the_last_event_of_a_large_journal_is_found_without_reading_it_all(path: Path) -> None:
    [line] = lines("last")
    with path.open("wb") as file:
        file.truncate(50_000_000_000)  # a hole: reading it all would take minutes
        file.seek(0, 2)
        file.write(b"\n" + line + b"\n")
    assert [message(event) for event in JournalReader(path).last(1)] == ["last"]


@pytest.mark.parametrize("name", ["events.jsonl.gz", "events.gzipped", "recording.jsonl"])
def test_gzipped_journals_are_read_with_the_same_cursors_whatever_they_are_called(path: Path, name: str) -> None:
    written = write_journal(path, "a", "b", "c")
    packed = path.with_name(f"packed-{name}")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    reader = JournalReader(packed)
    assert [event.cursor for event in reader.read()] == [event.cursor for event in written]
    assert [message(event) for event in reader.read(written[0].cursor)] == ["b", "c"]
    assert [message(event) for event in reader.last(2)] == ["b", "c"]


def test_a_journal_that_is_not_there_is_said_so(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(JournalReader(path).read())
    with pytest.raises(FileNotFoundError):
        JournalReader(path).last(1)


@pytest.mark.parametrize("cursor", [-1, 2**53, 2**63, 10**23])
async def test_what_no_file_offset_can_be_is_refused(path: Path, cursor: int) -> None:
    write_journal(path, "a")
    with pytest.raises(UsageError, match="no cursor"):
        list(JournalReader(path).read(cursor))
    with pytest.raises(UsageError, match="no cursor"):
        await anext(JournalReader(path).tail(cursor, clock=VirtualClock()))
    assert list(JournalReader(path).read(2**53 - 1)) == []


def test_events_are_found_by_their_ids_whoever_wrote_their_lines(path: Path) -> None:
    batch = events("a", "b", "c", "d")
    ours, other, foreign, torn = (orjson.dumps(event.envelope()) for event in batch)
    spaced = foreign.replace(b'{"id":', b'{ "id" : ')
    path.write_bytes(b"\n".join([ours, other, b"no event", spaced, torn[:-5]]))
    wanted = {batch[0].id, batch[2].id, batch[3].id, "unknown"}
    found = list(JournalReader(path).find(wanted))
    assert [message(event) for event in found] == ["a", "c"]
    assert [event.size_bytes for event in found] == [len(ours) + 1, len(spaced) + 1]
    assert found[0].cursor == len(ours) + 1


def test_a_plain_journal_may_be_called_as_a_gzip_is(path: Path) -> None:
    write_journal(path, "a", "b")
    plain = path.rename(path.with_suffix(".jsonl.gz"))
    assert [message(event) for event in JournalReader(plain).read()] == ["a", "b"]
    assert [message(event) for event in JournalReader(plain).last(1)] == ["b"]
