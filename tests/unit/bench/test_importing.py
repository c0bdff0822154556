"""``journal import``: a recording becomes a journal of ours (spec cli)."""

import json
from pathlib import Path

import pytest
from tests.support.agent_streams import NAMES
from tests.support.recordings import event, write_journal

from hankwatch.bench.importing import import_journal
from hankwatch.bench.sources import Source, open_source
from hankwatch.core.errors import JournalWriteError, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.statistics import journal_statistics


def import_(source: Source | Path, out: Path, redactor: Redactor | None = None) -> Path:
    if isinstance(source, Path):
        source = open_source(str(source), Path("/nowhere"))
    import_journal(source, out, redactor or Redactor(enabled=False))
    return out


def recording(fixtures: Path, name: str) -> Path:
    folder = fixtures / "agent-streams"
    return next(path for path in (folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz") if path.exists())


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_stream_becomes_a_whole_journal_of_one_codon(fixtures: Path, tmp_path: Path, name: str) -> None:
    journal = import_(recording(fixtures, name), tmp_path / "events.jsonl")
    found = journal_statistics(journal)
    assert found.ok
    assert not found.flags
    assert found.types["codon.completed"].count == 1


def test_the_same_source_gives_the_same_bytes(fixtures: Path, tmp_path: Path) -> None:
    one, other = (import_(recording(fixtures, "claude-success"), tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_our_own_journal_comes_through_unchanged(fixtures: Path, tmp_path: Path) -> None:
    first = import_(recording(fixtures, "claude-success"), tmp_path / "first")
    assert import_(first, tmp_path / "second").read_bytes() == first.read_bytes()


def test_a_foreign_journal_keeps_its_ids_and_payloads(fixtures: Path, tmp_path: Path) -> None:
    original = fixtures / "journals" / "recorded-0.10.events.jsonl"
    foreign = [json.loads(line) for line in original.read_text().splitlines()]
    ours = [one.envelope() for one in JournalReader(import_(original, tmp_path / "out")).read()]
    for theirs, mine in zip(foreign, ours, strict=True):
        assert {key: mine[key] for key in ("id", "type", "data")} == {
            key: theirs[key] for key in ("id", "type", "data")
        }


def test_secrets_are_redacted_also_where_a_cut_would_hide_half_of_one(tmp_path: Path) -> None:
    secret = "hunter2-hunter2-hunter2"
    redactor = Redactor({"API_KEY": secret})
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"echo {secret}"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "x" * 2_490 + secret}
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "message": {"id": "m", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [answer]}},
    ]
    path = tmp_path / "stream"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = import_(open_source(str(path), tmp_path, redact=redactor.text), tmp_path / "out", redactor).read_text()
    assert "[redacted:" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_that_exists_is_overwritten(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    match kind:
        case "file":
            out.write_text("mine")
        case "folder":
            out.mkdir()
        case _:
            out.symlink_to("nowhere")
    with pytest.raises(UsageError, match="exists already"):
        import_(write_journal(tmp_path / "j", [event(1)]), out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j", "out"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the folder"):
        import_(write_journal(tmp_path / "j", [event(1)]), tmp_path / "none" / "out")


def test_a_source_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    source = open_source(str(write_journal(tmp_path / "j", [event(1)])), tmp_path)
    source.codon = "none-of-this-name"
    with pytest.raises(UsageError, match="no codon"):
        import_(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["j"]


def test_a_full_disk_is_an_infrastructure_failure_that_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(str(write_journal(tmp_path / "j", [event(1)])), tmp_path)

    def full(_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hankwatch.bench.importing.encode_line", full)
    with pytest.raises(JournalWriteError, match="No space left"):
        import_(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["j"]
