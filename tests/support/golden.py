"""Journals without what differs from run to run; ``HANKWATCH_UPDATE_GOLDEN=1`` writes the expected files anew."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hankwatch.events.envelope import Event

FOLDER = Path(__file__).parent.parent / "scenario" / "golden"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
# Of a prompt's size: it shows durations.
_VARYING = {"duration", "executionTimeMs", "totalTime", "claudePid", "serverPid", "input"}


def normalised(events: Sequence[Event], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Type and data of each event: ids become their number, ``names`` (paths, run id) what they map to."""
    numbers = {event.id: f"<event {number}>" for number, event in enumerate(events)}

    def clean(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: clean(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if key in _VARYING and isinstance(value, int):
            return 0
        if isinstance(value, str):
            value = _STAMP.sub("<stamp>", numbers.get(value, value))
            for old, new in names.items():
                value = value.replace(old, new)
        return value

    return [{"type": event.type, "data": clean(event.data)} for event in events]


def assert_golden(name: str, lines: Sequence[Mapping[str, Any]]) -> None:
    """The lines equal those of the file ``name``."""
    path = FOLDER / f"{name}.jsonl"
    if os.environ.get("HANKWATCH_UPDATE_GOLDEN"):
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    expected = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, (line, wanted) in enumerate(zip(lines, expected, strict=False), 1):
        assert line == wanted, f"line {number}"
    assert len(lines) == len(expected)
