"""Recordings: found, recognised, stamped, each event once (spec hank 5, events)."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_streams import NAMES
from tests.support.recordings import START, at, event, fires, ids, seen_by, transition, watcher, write_journal

from hankwatch.agents.detect import DIALECTS
from hankwatch.bench.sources import open_source
from hankwatch.core.errors import UsageError

CLAUDE: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
    {"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "hi", "session_id": "s"},
]


def stream(path: Path, *records: object) -> Path:
    path.write_text("".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in records))
    return path


def stamps(path: Path) -> list[tuple[str, str]]:
    found = [fire.batch.events[0] for fire in fires(watcher(), path)]
    return [(one.type, one.timestamp) for one in found]


def test_lines_without_stamps_follow_each_other_from_the_year_2000(tmp_path: Path) -> None:
    assert stamps(stream(tmp_path / "s", *CLAUDE)) == [
        ("codon.started", "2000-01-01T00:00:00.000Z"),
        ("assistant.action", "2000-01-01T00:00:00.005Z"),
        ("codon.completed", "2000-01-01T00:00:00.010Z"),
    ]


def test_the_first_stamp_is_the_start_and_a_line_without_one_follows_by_5_ms(tmp_path: Path) -> None:
    stamped = CLAUDE[1] | {"timestamp": at(100)}
    assert stamps(stream(tmp_path / "s", CLAUDE[0], "\n", stamped, CLAUDE[2])) == [
        ("codon.started", at(100)),
        ("assistant.action", at(100)),
        ("codon.completed", at(105)),
    ]


def test_stamps_of_a_stream_that_go_back_are_raised(tmp_path: Path) -> None:
    first, late = CLAUDE[0] | {"timestamp": at(500)}, CLAUDE[1] | {"timestamp": at(100)}
    assert [stamp for _, stamp in stamps(stream(tmp_path / "s", first, late, CLAUDE[2]))] == [at(500), at(500), at(505)]


def test_stamps_of_a_journal_that_go_back_are_raised(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1, "info", at(9)), event(2, "info", at(3)), event(3, "info", at(10))])
    assert [stamp for _, stamp in stamps(path)] == [at(9), at(9), at(10)]


def test_events_of_a_journal_without_stamps_follow_the_one_before(tmp_path: Path) -> None:
    lines = [event(1, "info", "soon"), event(2, "info", at(7)), event(3, "info", "later")]
    assert [stamp for _, stamp in stamps(write_journal(tmp_path / "j", lines))] == [at(7), at(7), at(12)]


def test_a_banner_before_the_first_line_does_not_hide_the_start(tmp_path: Path) -> None:
    source = open_source(str(stream(tmp_path / "s", "Welcome!\n", *CLAUDE)), tmp_path)
    assert fires(watcher(), source)[0].batch.events[0].type == "codon.started"
    assert source.bad_lines == 1


@pytest.mark.parametrize("name", [name for name in DIALECTS if f"{name}-success" in NAMES])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_streams_of_every_program_are_recognised_and_end_as_a_codon(
    fixtures: Path, tmp_path: Path, name: str, packed: bool
) -> None:
    original = fixtures / "agent-streams" / f"{name}-success.jsonl"
    path = tmp_path / "stream"
    path.write_bytes(gzip.compress(original.read_bytes()) if packed else original.read_bytes())
    source = open_source(str(path), tmp_path, codon="build")
    events = [fire.batch.events[0] for fire in fires(watcher(), source)]
    assert source.program == name
    assert (events[0].type, events[-1].type) == ("codon.started", "codon.completed")
    assert events[-1].data["success"] is True
    assert {one.data["codonId"] for one in events if "codonId" in one.data} == {"build"}


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_a_byte_order_mark_and_dos_line_ends_change_nothing(tmp_path: Path, ending: str, mark: str) -> None:
    path = tmp_path / "j"
    text = ending.join(json.dumps(event(number)) for number in (1, 2))
    path.write_bytes((mark + text + ending).encode())
    source = open_source(str(path), tmp_path)
    assert ids(fires(watcher(), source)) == [["e001"], ["e002"]]
    assert source.bad_lines == 0


def test_bad_lines_are_counted_and_a_torn_tail_is_not(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "j", [event(1)])
    path.write_bytes(path.read_bytes() + b'nonsense\n[1]\n\xff\xfe\n{"id":"e')
    source = open_source(str(path), tmp_path)
    assert ids(fires(watcher(), source)) == [["e001"]]
    assert source.bad_lines == 3


def test_an_id_that_comes_again_within_a_run_is_one_event(tmp_path: Path) -> None:
    lines = [event(5), event(2), event(5), event(9), event(2), transition(10, "RunStarted", run="r2"), event(5)]
    source = open_source(str(write_journal(tmp_path / "j", lines)), tmp_path)
    assert ids(fires(watcher("info"), source)) == [["e005"], ["e002"], ["e009"], ["e005"]]
    assert source.replayed == 2


def two_runs(base: Path) -> Path:
    root = base / "1-execution"
    journal = root / ".hankweave" / "events" / "events.jsonl"
    journal.parent.mkdir(parents=True)
    for run in ("100-first", "200-second"):
        (root / ".hankweave" / "runs" / run).mkdir(parents=True)
    first = [transition(1, "RunStarted", run="100-first"), event(2)]
    write_journal(journal, [*first, transition(3, "RunStarted", run="200-second"), event(4)])
    return root


@pytest.mark.parametrize(
    ("target", "seen"),
    [("latest", ["e004"]), ("1-exec", ["e004"]), ("100", ["e002"]), ("200-second", ["e004"])],
)
def test_an_execution_means_its_latest_run_and_a_run_itself(tmp_path: Path, target: str, seen: list[str]) -> None:
    two_runs(tmp_path)
    assert seen_by(fires(watcher("info"), open_source(target, tmp_path))) == seen


def test_the_journal_file_means_all_of_it(tmp_path: Path) -> None:
    journal = two_runs(tmp_path) / ".hankweave" / "events" / "events.jsonl"
    assert seen_by(fires(watcher("info"), journal)) == ["e002", "e004"]


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", bytes(range(256)) * 50, b"plain text\n", b'{"a":1}\n', gzip.compress(b"", mtime=0)],
    ids=["empty", "blank", "binary", "text", "json", "empty gzip"],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UsageError, match="no recording that can be recognised"):
        open_source(str(tmp_path / "file"), tmp_path)


def test_a_damaged_gzip_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(json.dumps(event(n)).encode() + b"\n" for n in range(2_000)), mtime=0)
    for damaged in (whole[: len(whole) // 2], whole[:40] + b"\x00" * 40 + whole[80:]):
        (tmp_path / "j.gz").write_bytes(damaged)
        with pytest.raises(UsageError, match="cannot be read"):
            fires(watcher(), tmp_path / "j.gz")


def test_an_unknown_program_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no agent program is named 'emacs'") as caught:
        open_source(str(stream(tmp_path / "s", *CLAUDE)), tmp_path, agent="emacs")
    assert "claude" in str(caught.value.hint)


def test_increasing_ids_are_not_remembered(tmp_path: Path) -> None:
    from tests.support.cases import event_of

    from hankwatch.bench.journal_view import Repeats

    def never(count: int) -> list[object]:
        raise AssertionError(count)

    repeats = Repeats(never)  # type: ignore[arg-type]
    assert not any(repeats.again(event_of(event(number, "info", START))) for number in range(1, 50))
