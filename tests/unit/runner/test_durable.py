"""Small JSON files of the managed folder, which an agent can reach."""

import os
from pathlib import Path

import pytest

from hankwatch.runner.durable import read_json, write_json


def test_what_was_written_is_read_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "below" / "it.json"
    for value in ({"name": "\udcff"}, [1]):
        write_json(path, value)
        assert read_json(path) == value
    assert [file.name for file in path.parent.iterdir()] == ["it.json"]


def test_a_missing_file_has_no_value(tmp_path: Path) -> None:
    assert read_json(tmp_path / "it.json") is None


def test_a_fifo_is_neither_waited_for_nor_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    for name in ("it.json", "it.json.tmp"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="egular"):
        read_json(path)
    write_json(path, 1)
    assert read_json(path) == 1
