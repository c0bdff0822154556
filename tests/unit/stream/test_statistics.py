"""``journal stats``: counts, sizes and everything that is not right, in one pass and modest memory."""

import json
import tracemalloc
from pathlib import Path

import pytest
from tests.support.recordings import at, event, transition, write_journal

from hankwatch.stream.statistics import journal_statistics


def test_types_are_counted_and_their_sizes_add_up_to_the_file(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1), event(2), transition(3, "RunStarted")])
    found = journal_statistics(path)
    assert {name: kind.count for name, kind in found.types.items()} == {"info": 2, "state.transition": 1}
    assert sum(kind.size_bytes for kind in found.types.values()) == found.size_bytes == path.stat().st_size
    assert found.ok


def test_first_and_last_are_the_stamps_at_both_ends(tmp_path: Path) -> None:
    found = journal_statistics(write_journal(tmp_path / "j", [event(1, "info", at(5)), event(2, "info", at(9))]))
    assert (found.first, found.last) == (at(5), at(9))


@pytest.mark.parametrize(
    ("tail", "problems"),
    [
        (b"", {}),
        (b"nonsense\n", {"badLines": 1}),
        (b'{"id":"torn', {"tornTailBytes": 11}),
        (json.dumps(event(9)).encode(), {}),  # whole, only its newline is missing
        (json.dumps(event(1)).encode() + b"\n", {"repeatedIds": 1}),
        (json.dumps(event(9, "info", "2025-01-01T00:00:00.000Z")).encode() + b"\n", {"backwardStamps": 1}),
    ],
)
def test_each_kind_of_damage_has_a_count(tmp_path: Path, tail: bytes, problems: dict[str, int]) -> None:
    path = write_journal(tmp_path / "j", [event(1), event(2)])
    path.write_bytes(path.read_bytes() + tail)
    found = journal_statistics(path)
    assert {name: count for name, count in found.problems.items() if count} == problems
    assert found.ok is (not problems)


def test_what_tolerant_reading_mended_is_counted_but_no_fault(tmp_path: Path) -> None:
    found = journal_statistics(write_journal(tmp_path / "j", [event(1, "of.the.future"), event(2, "info", at(1), x=1)]))
    assert (found.ok, dict(found.flags)) == (True, {"unknown-type": 1, "payload-misfit": 1})


@pytest.mark.slow
def test_memory_grows_by_bytes_and_not_by_ids(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = write_journal(tmp_path / "j", [event(number) for number in range(count)])
        tracemalloc.start()
        try:
            journal_statistics(path)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)
    assert peak(22_000) - peak(2_000) < 20_000 * 16
