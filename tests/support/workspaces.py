"""Execution directories and what stands in them, for tests of what works on files."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hankwatch.events.activity import AssistantAction, ToolResult
from hankwatch.events.payload import Payload
from hankwatch.runner import scan
from hankwatch.runner.layout import Layout


def execution(tmp_path: Path, files: dict[str, str | bytes] | None = None) -> Layout:
    """An execution directory whose workspace holds ``files``."""
    layout = Layout(tmp_path / "execution")
    layout.agent_root.mkdir(parents=True)
    layout.managed.mkdir()
    write(layout.agent_root, files or {})
    return layout


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write files below ``root``, making their folders."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def contents(root: Path) -> dict[str, str]:
    """Every file and link below ``root`` by relative path: its text, or ``-> target``; folders that are empty too."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for name in (*folders, *names):
            path = here / name
            shown = str(path.relative_to(root))
            if path.is_symlink():
                found[shown] = f"-> {path.readlink()}"
            elif path.is_file():
                found[shown] = path.read_bytes().decode("utf-8", "replace")
            elif path.is_dir() and not any(path.iterdir()):
                found[f"{shown}/"] = ""
    return found


@dataclass(frozen=True, slots=True)
class HugeFolder:
    """A look at a folder with no end of files in it."""

    begun: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set once the look was given up."""


def look_without_end(monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> HugeFolder:
    """From now on every look at a folder takes as long as it is wanted, but for the first ``after``."""
    huge, entries, looks = HugeFolder(), scan._entries, iter(range(after))

    def look(folder: Path, given_up: Callable[[], bool]) -> Iterator[tuple[str, os.stat_result]]:
        if next(looks, None) is not None:
            yield from entries(folder, given_up)
            return
        huge.begun.set()
        while not given_up():
            huge.ended.wait(0.005)
        huge.ended.set()

    monkeypatch.setattr(scan, "_entries", look)
    return huge


class Emitted:
    """Collects payloads; stands where a stream's ``emit`` is wanted."""

    def __init__(self, then: Callable[[Payload], object] = lambda _payload: None) -> None:
        self.payloads: list[Payload] = []
        self._then = then

    def __call__(self, *payloads: Payload) -> None:
        for payload in payloads:
            self.payloads.append(payload)
            self._then(payload)


def call(use_id: str, tool: str, **tool_input: Any) -> AssistantAction:
    """A tool call of an agent."""
    return AssistantAction(
        codon_id="one#0", action="tool_use", content="", tool_name=tool, tool_input=tool_input, tool_use_id=use_id
    )


def result(use_id: str) -> ToolResult:
    """Its answer."""
    return ToolResult(
        codon_id="one#0",
        tool_use_id=use_id,
        tool_name="",
        result="",
        truncated=False,
        original_length=0,
        execution_time_ms=0,
        is_error=False,
    )
