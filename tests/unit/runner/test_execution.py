"""Execution directories: made once, found by path, prefix or latest, never mixed up."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hankwatch.core.errors import RunNotFound, UsageError
from hankwatch.runner.execution import Execution, find_journal, find_run, new_execution_dir, prepare
from hankwatch.runner.layout import Layout

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def hank(tmp_path: Path) -> Path:
    path = tmp_path / "hank.json"
    path.write_text("{}")
    return path


def make(base: Path, name: str, hank: Path, data: Path | None = None) -> Execution:
    return prepare(Layout(base / name), hank=hank, data=data, now=NOW)


def test_a_prepared_execution_says_what_it_was_made_from(tmp_path: Path, hank: Path) -> None:
    execution = make(tmp_path / "base", "1-x", hank)
    assert execution.meta["hankPath"] == str(hank)
    assert execution.layout.agent_root.is_dir()


def test_data_is_linked_where_agents_know_it(tmp_path: Path, hank: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("1")
    execution = make(tmp_path / "base", "1-x", hank, data)
    assert (execution.layout.agent_root / "read_only_data_source" / "a.csv").read_text() == "1"


def test_a_single_data_file_is_linked_inside_a_folder(tmp_path: Path, hank: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("1")
    execution = make(tmp_path / "base", "1-x", hank, data)
    assert (execution.layout.agent_root / "read_only_data_source" / "a.csv").read_text() == "1"


def test_other_data_is_refused_and_the_first_kept(tmp_path: Path, hank: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    make(tmp_path / "base", "1-x", hank, tmp_path / "one")
    with pytest.raises(UsageError, match="is not the data"):
        make(tmp_path / "base", "1-x", hank, tmp_path / "two")


def test_missing_data_is_a_usage_error(tmp_path: Path, hank: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        make(tmp_path / "base", "1-x", hank, tmp_path / "none")


def test_data_that_is_neither_file_nor_folder_is_a_usage_error(tmp_path: Path, hank: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        make(tmp_path, "1-x", hank, tmp_path / "fifo")


def test_latest_is_the_newest_execution(tmp_path: Path, hank: Path) -> None:
    for name in ("1-a", "3-c", "2-b"):
        make(tmp_path, name, hank)
    assert find_run("latest", tmp_path).execution.name == "3-c"


def test_a_prefix_or_a_path_or_a_run_id_finds_an_execution(tmp_path: Path, hank: Path) -> None:
    for name in ("1-a", "2-b"):
        make(tmp_path, name, hank)
    (tmp_path / "1-a" / ".hankweave" / "runs" / "99-run").mkdir(parents=True)
    for name in ("1-", str(tmp_path / "1-a"), "99-"):
        assert find_run(name, tmp_path).execution.name == "1-a"


def test_an_ambiguous_prefix_names_the_candidates(tmp_path: Path, hank: Path) -> None:
    for name in ("1-a", "1-b"):
        make(tmp_path, name, hank)
    with pytest.raises(UsageError, match="1-b, 1-a"):
        find_run("1", tmp_path)


def test_a_whole_id_wins_over_those_it_begins(tmp_path: Path, hank: Path) -> None:
    for name in ("1-a", "1-ab"):
        make(tmp_path, name, hank)
    assert find_run("1-a", tmp_path).execution.name == "1-a"


def test_a_run_id_means_that_run_and_an_execution_its_latest(tmp_path: Path, hank: Path) -> None:
    make(tmp_path, "1-a", hank)
    for run in ("98-first", "99-second"):
        (tmp_path / "1-a" / ".hankweave" / "runs" / run).mkdir(parents=True)
    assert find_run("98", tmp_path).run == "98-first"
    assert find_run("1-a", tmp_path).run is None
    with pytest.raises(UsageError, match="means 2 runs: 98-first, 99-second"):
        find_run("9", tmp_path)


def test_latest_is_where_the_latest_run_began_whatever_directories_are_called(tmp_path: Path, hank: Path) -> None:
    for name in ("my-own-name", "1000-a", "2000-b"):
        make(tmp_path, name, hank)
    (tmp_path / "my-own-name" / ".hankweave" / "execution-meta.json").write_text('{"createdAt": 7}')
    assert find_run("latest", tmp_path).execution.name == "2000-b"
    (tmp_path / "1000-a" / ".hankweave" / "runs" / "3000-again").mkdir(parents=True)
    assert find_run("latest", tmp_path).execution.name == "1000-a"


def test_a_file_is_its_own_journal(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").touch()
    assert find_journal(str(tmp_path / "events.jsonl"), tmp_path) == tmp_path / "events.jsonl"


def test_an_execution_without_a_journal_says_so(tmp_path: Path, hank: Path) -> None:
    make(tmp_path, "1-a", hank)
    with pytest.raises(UsageError, match="1-a has no journal yet"):
        find_journal("1-a", tmp_path)


def test_what_cannot_be_a_journal_is_refused_without_opening_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="not a regular file"):
        find_journal(str(tmp_path / "fifo"), tmp_path)
    with pytest.raises(UsageError, match=r"a directory without \.hankweave"):
        find_journal(str(tmp_path), tmp_path)


@pytest.mark.parametrize("name", ["latest", "zzz", "/nowhere", ""])
def test_nothing_found_says_how_to_list(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunNotFound) as caught:
        find_run(name, tmp_path / "empty")
    assert "hankwatch runs" in str(caught.value.hint)


def test_new_directories_do_not_collide(tmp_path: Path) -> None:
    assert new_execution_dir(tmp_path, None, NOW) != new_execution_dir(tmp_path, None, NOW)
