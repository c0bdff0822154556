"""What the loop watchdog says of every recorded agent stream, against the verdicts people gave."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_streams import NAMES, play, stream_lines

from hankwatch.events.payload import Payload
from hankwatch.testing import make_event
from hankwatch.watchdog import Watchdog, WatchdogPolicy
from hankwatch.watchdog.tool_classes import TOOL_CLASSES

TABLE = Path(__file__).parents[2] / "fixtures" / "watchdog" / "verdicts.jsonl"
VERDICTS: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


def test_every_stream_has_a_verdict_with_its_reason() -> None:
    assert tuple(verdict["stream"] for verdict in VERDICTS) == NAMES
    assert all(verdict["why"] for verdict in VERDICTS)


@pytest.mark.parametrize("verdict", VERDICTS, ids=[verdict["stream"] for verdict in VERDICTS])
def test_the_watchdog_agrees(verdict: dict[str, Any]) -> None:
    played = play(stream_lines(verdict["stream"]))
    told: list[Payload] = []
    classes = TOOL_CLASSES.get(played.program or "", {})
    watchdog = Watchdog(WatchdogPolicy(), "codon", emit=told.append, tool_classes=classes)
    for number, (event_type, data) in enumerate(played.events):
        watchdog.on_event(make_event(event_type, 1_000 * number, **data))
    assert bool(told) is verdict["fires"]
    assert (told[0].dump()["trigger"] if told else None) == verdict["trigger"]
