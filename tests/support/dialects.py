"""Feeding a dialect records instead of lines."""

import json
from typing import Any

from hankwatch.agents.program import Dialect
from hankwatch.agents.signals import Signal, ToolFinished


def fed(dialect: Dialect, *records: dict[str, Any]) -> list[Signal]:
    return [signal for record in records for signal in dialect.feed(json.dumps(record).encode())] + dialect.finish()


def results(signals: list[Signal]) -> list[ToolFinished]:
    return [signal for signal in signals if isinstance(signal, ToolFinished)]
