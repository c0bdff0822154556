"""Journals and reports without what differs from run to run; ``HANKWATCH_UPDATE_GOLDEN=1`` writes the expected files."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hankwatch.events.envelope import Event

FOLDER = Path(__file__).parent.parent / "scenario" / "golden"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_SHA = re.compile(r"\b[0-9a-f]{40}\b")
_RIG_TOOK = re.compile(r"(?<=\()\d+ms(?=, \d+ succeeded)")
_SHOWN_SHA_CHARS = 12
_TIMES = frozenset({"duration", "durationMs", "executionTimeMs", "totalTime", "timeSeconds", "actualTimeSeconds"})
# ``input``: tokens of a sentinel's prompt, whose events show durations.
_VARYING = _TIMES | {"claudePid", "serverPid", "input"}
_IDS = frozenset({"callId", "commandId"})


def normalised(events: Sequence[Event], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Type and data of each event, in journal order, without what differs from run to run.

    Order is never touched: two journals are equal only if everything happened in the same order. What is replaced:
    ids of events by their number in the journal, ids of model calls and commands by a word, stamps by ``<stamp>``,
    durations and process ids by 0, a checkpoint's SHA (and its shown beginning) by its number among the SHAs of the
    journal, and whatever ``names`` maps (run ids, absolute paths), longest first.
    """
    clean = cleaner(events, names)
    return [{"type": event.type, "data": clean(event.data)} for event in events]


def cleaner(events: Sequence[Event], names: Mapping[str, str]) -> Callable[[Any], Any]:
    """What ``normalised`` does to a value, for texts and records that were made from these events too."""
    numbers = {event.id: f"<event {number}>" for number, event in enumerate(events)}
    told = "\n".join(json.dumps(event.data) for event in events)
    replaced = dict(names)
    for number, sha in enumerate(dict.fromkeys(_SHA.findall(told))):
        replaced |= {sha: f"<sha {number}>", sha[:_SHOWN_SHA_CHARS]: f"<sha {number} shown>"}
    in_order = sorted(replaced.items(), key=lambda pair: -len(pair[0]))

    def clean(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: clean(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if key in _VARYING and isinstance(value, int | float):
            return 0
        if isinstance(value, str):
            if key in _IDS:
                return f"<{key}>"
            value = _RIG_TOOK.sub("<ms>", _STAMP.sub("<stamp>", numbers.get(value, value)))
            for old, new in in_order:
                value = value.replace(old, new)
        return value

    return clean


def is_updated() -> bool:
    """Whether expected files are to be written anew."""
    return bool(os.environ.get("HANKWATCH_UPDATE_GOLDEN"))


def assert_golden(name: str, lines: Sequence[Mapping[str, Any]]) -> None:
    """The lines equal those of the file ``name``."""
    path = FOLDER / f"{name}.jsonl"
    if is_updated():
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    expected = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, (line, wanted) in enumerate(zip(lines, expected, strict=False), 1):
        assert line == wanted, f"line {number}"
    assert len(lines) == len(expected)


def assert_golden_files(name: str, files: Mapping[str, str]) -> None:
    """These texts, by relative path, equal those of the folder ``name``, and it has no others."""
    folder = FOLDER / name
    if is_updated():
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    for path, text in files.items():
        assert text == (folder / path).read_text(encoding="utf-8"), path
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == files.keys()
