"""What a conversational sentinel remembers, in memory and in its file (spec sentinels 7).

The file is ``sentinels/history/<id>-codon-<codonId>.json`` of the managed folder: a list of
``{"message": {"role", "content"}, "tokens"}``, a question (``user``) always before its answer (``assistant``).
What is in it when a sentinel loads is where its conversation goes on, so a codon that is resumed or run again
in its execution keeps it.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from hankwatch.sentinels.config import Conversational, MaxTurns
from hankwatch.sentinels.report_files import ReportPath, opened_to_read, replace, safe_name
from hankwatch.sentinels.window import TOKENS_PER_MESSAGE, estimate_tokens


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer; kept and dropped together."""

    question: str
    answer: str

    @property
    def tokens(self) -> int:
        """Of both messages as they are sent; an estimate."""
        return estimate_tokens(self.question) + estimate_tokens(self.answer) + 2 * TOKENS_PER_MESSAGE


@dataclass(frozen=True, slots=True)
class Damage:
    """A history file that was not as it should be; a copy of it was set aside."""

    path: str
    side_file: str
    """Both relative to the execution directory."""
    entries: int
    """How many of its entries could not be used; 0 when the file as a whole could not, or was changed."""

    @property
    def message(self) -> str:
        """What people are told."""
        what = f"{self.entries} of its entries cannot be read" if self.entries else "it is not what was written"
        return f"the history {self.path} is damaged: {what}; as it was found it is kept as {self.side_file}"


def history_path(managed_dir: Path, sentinel_id: str, codon_id: str) -> ReportPath:
    """Where a sentinel's conversation of a codon is kept; characters unsafe in file names become ``-``."""
    parts = (managed_dir.name, "sentinels", "history", f"{safe_name(f'{sentinel_id}-codon-{codon_id}')}.json")
    return ReportPath(managed_dir.parent, parts, "/".join(parts))


_Version = tuple[int, int, int]
"""A file as it was at one moment: node, size, time of change."""


class Conversation:
    """The turns of one sentinel in one codon.

    Args:
        config: What is dropped when it has become too long.
        path: Its file; None keeps it in memory alone.

    Raises:
        PathRefused: the file, or a folder on the way to it, is a link or no regular file.
        OSError: it cannot be read, or a damaged one cannot be set aside.
    """

    def __init__(self, config: Conversational, path: ReportPath | None) -> None:
        self.damage: Damage | None = None
        """What was wrong with the file when it was read."""
        self._limit = config.trimming_strategy
        self._path = path
        self._version = self._found_version()
        found = self._read()
        self._turns, bad = ([], None) if self._version is None else _parse(found)
        self._trim()
        if bad is not None:
            self.damage = self._set_aside(found, bad)
            self._save()

    def fitting(self, fixed_tokens: int, room_tokens: int | None) -> list[Turn]:
        """The latest turns that fit, oldest first.

        Args:
            fixed_tokens: What the rest of the request takes: system prompt, new question, instructions.
            room_tokens: What the model's window leaves for all of the request; None when nobody knows.
        """
        rooms = [room_tokens, None if isinstance(self._limit, MaxTurns) else self._limit.max_tokens]
        known = [room for room in rooms if room is not None]
        return list(self._turns) if not known else _latest(self._turns, min(known) - fixed_tokens)

    def remember(self, turn: Turn) -> Damage | None:
        """Keep a turn that went well, and write the file; what someone else made of the file is set aside.

        Raises:
            PathRefused, OSError: the file cannot be written. The turn is kept, and written with the next one.
        """
        self._turns.append(turn)
        self._trim()
        found = self._found_version()
        damage = None if found in {None, self._version} else self._set_aside(self._read(), 0)
        self._save()
        return damage

    def _trim(self) -> None:
        if isinstance(self._limit, MaxTurns):
            self._turns = self._turns[-self._limit.max_turns :]
        else:
            self._turns = _latest(self._turns, self._limit.max_tokens)

    def _found_version(self) -> _Version | None:
        """Which version of the file is there; None without one."""
        if self._path is None:
            return None
        with opened_to_read(self._path) as fd:
            if fd is None:
                return None
            facts = os.fstat(fd)
            return facts.st_ino, facts.st_size, facts.st_mtime_ns

    def _read(self) -> bytes:
        if self._path is None:
            return b""
        with opened_to_read(self._path) as fd:
            if fd is None:
                return b""
            with os.fdopen(os.dup(fd), "rb") as file:
                return file.read()

    def _save(self) -> None:
        if self._path is not None:
            replace(self._path, orjson.dumps([*_entries(self._turns)], option=orjson.OPT_INDENT_2))
            self._version = self._found_version()

    def _set_aside(self, data: bytes, entries: int) -> Damage:
        assert self._path is not None
        mark = f".damaged-{hashlib.sha256(data).hexdigest()[:8]}"
        *folders, name = self._path.parts
        side = ReportPath(self._path.root, (*folders, name + mark), self._path.shown + mark)
        replace(side, data)
        return Damage(self._path.shown, side.shown, entries)


def _latest(turns: list[Turn], room_tokens: int) -> list[Turn]:
    """As many of the last turns as fit."""
    kept = len(turns)
    for turn in reversed(turns):
        room_tokens -= turn.tokens
        if room_tokens < 0:
            break
        kept -= 1
    return turns[kept:]


def _entries(turns: Iterable[Turn]) -> Iterator[dict[str, Any]]:
    for turn in turns:
        for role, content in (("user", turn.question), ("assistant", turn.answer)):
            yield {"message": {"role": role, "content": content}, "tokens": estimate_tokens(content)}


def _parse(data: bytes) -> tuple[list[Turn], int | None]:
    """The whole turns of a file, and how many entries are none of one: None for a sound file, 0 for no list."""
    try:
        entries = orjson.loads(data)
    except orjson.JSONDecodeError:
        return [], 0
    if not isinstance(entries, list):
        return [], 0
    turns: list[Turn] = []
    pairs = iter(range(len(entries) - 1))
    for place in pairs:
        question, answer = _content(entries[place], "user"), _content(entries[place + 1], "assistant")
        if question is not None and answer is not None:
            turns.append(Turn(question, answer))
            next(pairs, None)
    bad = len(entries) - 2 * len(turns)
    return turns, bad or None


def _content(entry: Any, role: str) -> str | None:
    message = entry.get("message") if isinstance(entry, dict) else None
    if not isinstance(message, dict) or message.get("role") != role:
        return None
    content = message.get("content")
    return content if isinstance(content, str) and content else None
