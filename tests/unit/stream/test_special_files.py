"""A FIFO in the place of a journal, which an agent can put there, is never waited for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hankwatch.stream import JournalReader
from hankwatch.stream.follow import FollowedFile
from hankwatch.stream.lock import holder


@pytest.mark.parametrize(
    "look",
    [
        lambda path: list(JournalReader(path).read()),
        lambda path: JournalReader(path).last(1),
        lambda path: list(FollowedFile(path, 0).lines()),
        holder,
    ],
    ids=["read", "last", "tail", "lock"],
)
def test_a_fifo_is_refused_at_once(tmp_path: Path, look: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "it")
    with pytest.raises(OSError, match="egular"):
        look(tmp_path / "it")
