"""Conformance cases: one JSON object a line, from a folder of files by kind."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hankwatch.events.envelope import Event
from hankwatch.events.stamps import parse_stamp

Case = dict[str, Any]

CASES = Path(os.environ.get("HANKWATCH_CASES") or Path(__file__).parents[2] / "fixtures" / "conformance")


def cases_of(kind: str) -> list[Any]:
    """The cases of one kind as test parameters, named by their ids; none when the folder lacks the file."""
    return [pytest.param(case, id=str(case.get("id", number))) for number, case in enumerate(_lines(kind))]


def events_of(case: Case) -> list[Event]:
    """The case's events, not held to any payload model."""
    return [event_of(event) for event in case["events"]]


def event_of(envelope: Case) -> Event:
    at_ms = parse_stamp(envelope["timestamp"])
    assert at_ms is not None
    return Event(envelope["id"], envelope["timestamp"], envelope["type"], envelope["data"], at_ms)


def _lines(kind: str) -> Iterator[Case]:
    plain, packed = CASES / f"{kind}.jsonl", CASES / f"{kind}.jsonl.gz"
    if plain.exists():
        text = plain.read_text(encoding="utf-8")
    elif packed.exists():
        text = gzip.decompress(packed.read_bytes()).decode("utf-8")
    else:
        return
    for line in text.split("\n"):
        if line.strip():
            yield json.loads(line)
