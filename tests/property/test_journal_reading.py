"""Laws of reading a journal, against the whole list as the oracle."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams import START_MS, events, message

from hankwatch.core.errors import BadLine
from hankwatch.events.codec import decode_line, encode_line
from hankwatch.stream import Journal, JournalReader
from hankwatch.stream.follow import FollowedFile

texts = st.text(max_size=30) | st.integers(0, 70_000).map(lambda n: "x" * n)
junk = st.sampled_from([b"", b"\r", b"{}", b"junk", b"\xff", b"[1]", b'{"id":"half'])
lines = st.lists(texts.map(lambda text: encode_line(events(text)[0])[:-1]) | junk, max_size=12)


def is_event(line: bytes) -> bool:
    try:
        decode_line(line, received_ms=START_MS)
    except BadLine:
        return False
    return True


@given(lines, st.integers(0, 14), st.booleans())
@settings(max_examples=150)
def test_reading_forwards_backwards_and_in_parts_agree(content: list[bytes], n: int, ended: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"\n".join(content) + (b"\n" if ended else b""))
        whole = [(event.cursor, message(event)) for event in JournalReader(path).read()]
        assert len(whole) == sum(map(is_event, content))
        assert [(e.cursor, message(e)) for e in JournalReader(path).last(n)] == whole[max(0, len(whole) - n) :]
        assert [(e.cursor, message(e)) for e in JournalReader(path).read(limit=n)] == whole[:n]
        for cursor, _ in whole:
            rest = [(e.cursor, message(e)) for e in JournalReader(path).read(cursor)]
            assert rest == [item for item in whole if item[0] > cursor]


@given(lines, st.data(), st.booleans())
@settings(max_examples=200)
def test_any_stretch_reads_the_same_forwards_and_backwards(
    content: list[bytes], data: st.DataObject, ended: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"\n".join(content) + (b"\n" if ended else b""))
        offsets = st.integers(0, path.stat().st_size + 5)
        after, until = data.draw(offsets), data.draw(offsets)
        reader = JournalReader(path)
        whole = [event.cursor for event in reader.read() if b"xxx" in encode_line(event)]
        stretch = [cursor for cursor in whole if after < cursor <= until]
        there = reader.search(lambda text: b"xxx" in text, after=after, until=until)
        assert [event.cursor for event in there] == stretch
        back = reader.search(lambda text: b"xxx" in text, after=after, until=until, backwards=True)
        assert [event.cursor for event in back] == stretch[::-1]


@given(st.lists(texts, min_size=1, max_size=5), st.data())
def test_a_cut_anywhere_loses_at_most_the_lines_it_went_through(messages: list[str], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        journal = Journal.open(path, sync_interval_s=None)
        written = events(*messages)
        journal.append(written)
        journal.close()
        cut = data.draw(st.integers(0, written[-1].cursor))
        with path.open("r+b") as file:
            file.truncate(cut)

        journal = Journal.open(path, sync_interval_s=None)
        [appended] = events("next")
        journal.append([appended])
        journal.close()
        reader = JournalReader(path)
        # A line whose newline alone is missing is whole.
        kept = [message(event) for event in written if event.cursor - 1 <= cut]
        assert [message(event) for event in reader.read()] == [*kept, "next"]
        assert reader.bad_lines == 0


@given(
    st.lists(texts, max_size=6),
    st.lists(st.integers(1, 400_000), max_size=12),
    st.binary(min_size=1, max_size=9).filter(lambda fragment: b"\n" not in fragment),
)
def test_following_gives_each_whole_line_once_however_it_was_written(
    messages: list[str], sizes: list[int], fragment: bytes
) -> None:
    content = b"".join(map(encode_line, events(*messages)))
    with TemporaryDirectory() as folder, (Path(folder) / "events.jsonl").open("ab", buffering=0) as writer:
        file = FollowedFile(Path(folder) / "events.jsonl", 0)
        got: list[tuple[bytes, int]] = []
        written = 0
        for size in [*sizes, len(content)]:
            writer.write(content[written : written + size])
            written = min(written + size, len(content))
            if content[:written].endswith(b"\n"):
                # Its writer dies inside a line and the next one cuts the fragment off.
                writer.write(fragment)
                got += read_all(file)
                writer.truncate(written)
            got += read_all(file)
        file.close()
    assert b"".join(line for line, _ in got) == content
    assert [cursor for _, cursor in got] == [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]


def read_all(file: FollowedFile) -> list[tuple[bytes, int]]:
    found = list(file.lines())
    while file.has_more:
        found += file.lines()
    assert not file.restarted
    return found
