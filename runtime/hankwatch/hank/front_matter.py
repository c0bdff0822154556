"""The block of ``key: value`` lines that a prompt file may begin with."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_BLOCK = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*))?$")
_ITEM = re.compile(r"\s*-\s+(.*)$")
_TEXTS = ("name", "description", "version", "author")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What front matter may say of a prompt (reference 1, ``codon.started.promptMetadata``)."""

    name: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    version: str | None = None
    author: str | None = None

    def as_data(self) -> dict[str, Any] | None:
        """As an event carries it; None when nothing was said."""
        said = {key: getattr(self, key) for key in _TEXTS if getattr(self, key) is not None}
        if self.tags is not None:
            said["tags"] = list(self.tags)
        return said or None


def split(text: str) -> tuple[Metadata, str]:
    """The front matter and the text without it.

    Read are plain and quoted values, ``[a, b]`` and ``- a`` lists of the known keys; whatever else the block
    holds is dropped with it. A text whose block is never closed has no front matter.
    """
    block = _BLOCK.match(text)
    if not block:
        return Metadata(), text
    said: dict[str, Any] = {}
    for key, value in _pairs(block[1]):
        if key == "tags":
            said[key] = tuple(value)
        elif key in _TEXTS and len(value) == 1:
            said[key] = value[0]
    return Metadata(**said), text[block.end() :]


def _pairs(block: str) -> Iterator[tuple[str, list[str]]]:
    key, values = "", list[str]()
    for line in block.splitlines():
        pair, item = _PAIR.match(line), _ITEM.match(line)
        if pair:
            if key:
                yield key, values
            key, values = pair[1], _values((pair[2] or "").strip())
        elif item and key:
            values = [*values, _plain(item[1])]
    if key:
        yield key, values


def _values(written: str) -> list[str]:
    if written.startswith("[") and written.endswith("]"):
        return [_plain(item) for item in written[1:-1].split(",") if item.strip()]
    return [_plain(written)] if written else []


def _plain(written: str) -> str:
    written = written.strip()
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        return written[1:-1]
    return re.sub(r"\s+#.*$", "", written)
