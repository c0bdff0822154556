"""What changed among the watched files, and who reported it; pure (spec hank 2, ``file.updated.source``)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final

from hankwatch.core.text import clean_text
from hankwatch.events.activity import (
    AssistantAction,
    FiletreeUpdated,
    FileUpdated,
    FromCodonStart,
    FromToolUse,
    FromWatcher,
    ToolResult,
)
from hankwatch.events.envelope import format_stamp
from hankwatch.events.shapes import FileNode
from hankwatch.runner.globs import Globs
from hankwatch.runner.scan import Entry, Scan

INLINE_BYTES: Final = 256 * 1024
"""Larger files are told by hash and size (spec events)."""
SETTLE_S: Final = 1.0
"""How long a file must stand still before the watcher reports it: its tool call may be about to be told."""
MAX_HOLD_S: Final = 10.0
"""A file that never stands still is reported this often."""
MAX_TREE_FILES: Final = 5_000
"""More per pattern are left out of ``filetree.updated``, as are files below ``MAX_TREE_DEPTH`` folders."""
MAX_TREE_DEPTH: Final = 40

_PATH_KEYS: Final = frozenset(
    {"path", "file_path", "filepath", "file", "filename", "notebook_path", "absolute_path", "target_file"}
)
_NESTED_KEYS: Final = frozenset({"changes", "edits", "files"})
_READERS: Final = frozenset(
    {"read", "read_file", "read_files", "read_many_files", "notebookread", "view", "cat", "glob", "grep", "ls", "list"}
    | {"list_directory", "list_files", "search", "search_files", "find"}
)
_MAX_NAMED: Final = 256

Reporter = FromCodonStart | FromToolUse | FromWatcher


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it was read."""

    entry: Entry
    sha256: str | None
    """Of its bytes, 64 hex digits; None for a file that is there but cannot be read."""
    text: str | None
    """None when it is larger than ``INLINE_BYTES`` or no UTF-8 text."""


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """A difference that was seen but not told."""

    entry: Entry | None
    since_s: float
    first_s: float


@dataclass(slots=True)
class TrackedFiles:
    """Knows the watched files as last told; says what is new and makes the event of it."""

    globs: Globs
    codon_id: str
    base_codon_id: str
    roots: tuple[str, ...]
    """Spellings of the workspace's absolute path, by which a tool may name files in it."""
    is_report: Callable[[str], bool] = lambda _path: False
    """Whether a path is a sentinel's report: told only when a tool writes it."""
    _known: dict[str, tuple[Entry, str | None]] = field(default_factory=dict)
    _calls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _unsettled: dict[str, _Unsettled] = field(default_factory=dict)

    def note_call(self, action: AssistantAction) -> None:
        """A tool call begins: the files that it names are its to report until it ends."""
        if action.tool_use_id and action.action == "tool_use":
            paths = named_paths(action.tool_name or "", action.tool_input or {}, self.roots)
            self._calls[action.tool_use_id] = tuple(path for path in paths if self.globs.match(path))

    def note_result(self, result: ToolResult) -> tuple[str, ...]:
        """A tool call ended; the watched paths it named, to be looked at now."""
        return self._calls.pop(result.tool_use_id, ())

    @property
    def waits(self) -> bool:
        """Some change has not stood still for long enough."""
        return bool(self._unsettled)

    def due(self, scan: Scan, now_s: float, *, final: bool = False) -> list[str]:
        """The paths that differ from what was told and are the watcher's to report, in order.

        Not those that an open call names or that changed within ``SETTLE_S``; ``final`` takes them all.
        """
        held = frozenset() if final else frozenset(path for paths in self._calls.values() for path in paths)
        files = {path: entry for path, entry in scan.files.items() if not entry.is_link}
        now: dict[str, Entry | None] = {path: entry for path, entry in files.items() if self._differs(path, entry)}
        now |= dict.fromkeys(path for path in self._known if path not in files and scan.covers(path))
        before, self._unsettled = self._unsettled, {}
        ready = []
        for path, entry in sorted(now.items()):
            seen = before.get(path, _Unsettled(entry, now_s, now_s))
            since_s = seen.since_s if seen.entry == entry else now_s
            settled = now_s - since_s >= SETTLE_S or now_s - seen.first_s >= MAX_HOLD_S
            if final or (settled and path not in held):
                ready.append(path)
            else:
                self._unsettled[path] = _Unsettled(entry, since_s, seen.first_s)
        return ready

    def _differs(self, path: str, entry: Entry) -> bool:
        known = self._known.get(path)
        return (known is None or known[0] != entry) and not self.is_report(path)

    def adopt(self, path: str, content: Content | None, reporter: Reporter) -> FileUpdated | None:
        """Take over what ``path`` holds now (None: nothing); the event, or None when nothing is new."""
        _, told = self._known.pop(path, (None, None))
        self._unsettled.pop(path, None)
        if content is not None:
            self._known[path] = (content.entry, content.sha256 or told)
            if content.sha256 in {None, told}:
                return None
        elif told is None:
            return None
        inline = content is None or content.text is not None
        shown = clean_text(path)
        return FileUpdated(
            codon_id=self.codon_id,
            base_codon_id=self.base_codon_id,
            path=shown,
            filename=PurePosixPath(shown).name,
            content=content.text if content else None,
            sha256=None if inline or content is None else content.sha256,
            size_bytes=None if inline or content is None else content.entry.size_bytes,
            action="deleted" if content is None else "created" if told is None else "modified",
            source=reporter,
        )

    def tree(self) -> FiletreeUpdated:
        """The watched files as told, one root list per pattern."""
        nodes: list[FileNode] = []
        for pattern in self.globs.patterns:
            only = Globs([pattern])
            taken = (path for path in sorted(self._known) if only.match(path))
            nodes += _nodes(islice(taken, MAX_TREE_FILES), self._known)
        return FiletreeUpdated(tree=nodes)


def _nodes(paths: Iterable[str], known: Mapping[str, tuple[Entry, str | None]]) -> list[FileNode]:
    tree: dict[str, Any] = {}
    for path in paths:
        *folders, name = path.split("/")
        if len(folders) > MAX_TREE_DEPTH:
            continue
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = known[path][0]
    return _children(tree, "")


def _children(tree: Mapping[str, Any], above: str) -> list[FileNode]:
    nodes = []
    for name, inner in tree.items():
        shown = clean_text(name)
        path = f"{above}/{shown}" if above else shown
        if isinstance(inner, Entry):
            modified = format_stamp(max(0, inner.mtime_ns // 1_000_000))
            nodes.append(FileNode(name=shown, path=path, is_directory=False, last_modified=modified, children=[]))
        else:
            nodes.append(FileNode(name=shown, path=path, is_directory=True, children=_children(inner, path)))
    return nodes


def named_paths(tool: str, tool_input: Mapping[str, Any], roots: Iterable[str]) -> list[str]:
    """The files of the workspace that a call may write, relative to it; none for a tool that only reads.

    Taken from the argument names that agent programs use, lists of changes included. ``roots`` are the absolute
    spellings of the workspace.
    """
    if tool.rpartition(".")[2].lower() in _READERS or tool_input.get("command") == "view":
        return []
    found = dict.fromkeys(path for text in _named(tool_input) if (path := _below(text, roots)) is not None)
    return list(found)[:_MAX_NAMED]


def _named(tool_input: Mapping[str, Any]) -> Iterable[str]:
    for key, value in tool_input.items():
        name = key.lower()
        if name in _PATH_KEYS and isinstance(value, str):
            yield value
        elif name in _NESTED_KEYS and isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from _named({key: inner for key, inner in item.items() if key.lower() in _PATH_KEYS})
                elif isinstance(item, str):
                    yield item


def _below(text: str, roots: Iterable[str]) -> str | None:
    """``text`` as a path relative to the workspace; None when it lies outside."""
    if text.startswith("/"):
        root = next((root for root in roots if text.startswith(f"{root}/")), None)
        if root is None:
            return None
        text = text[len(root) + 1 :]
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts) or None
