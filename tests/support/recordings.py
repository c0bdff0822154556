"""Journals and agent streams as files, and what ``try`` makes of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hankwatch.bench.attempt import Attempt, Fire
from hankwatch.bench.sources import Source, open_source
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.core.redaction import Redactor
from hankwatch.sentinels.config import SentinelConfig, parse_sentinel

START = "2026-01-01T00:00:00.000Z"


def event(number: int, type_name: str = "info", at: str = START, /, **data: Any) -> dict[str, Any]:
    """An envelope whose id is its number."""
    return {"id": f"e{number:03d}", "timestamp": at, "type": type_name, "data": data or {"message": f"{number}"}}


def at(ms: int) -> str:
    """The stamp that many milliseconds (below a minute) after ``START``."""
    return f"2026-01-01T00:00:{ms // 1000:02d}.{ms % 1000:03d}Z"


def transition(number: int, kind: str, at_: str = START, /, *, run: str = "r1", **data: Any) -> dict[str, Any]:
    """A ``state.transition``; ``codonId`` among ``data`` names its codon."""
    inner = {"type": kind, "data": {"runId": run, **data}}
    return event(number, "state.transition", at_, transitionType=kind, runId=run, transition=inner, **data)


def write_journal(path: Path, events: Sequence[Mapping[str, Any]]) -> Path:
    """One line each."""
    path.write_text("".join(json.dumps(one) + "\n" for one in events), encoding="utf-8")
    return path


def sentinel_config(config: Mapping[str, Any]) -> SentinelConfig:
    """The model of a config without a fault."""
    diagnostics = Diagnostics()
    parsed = parse_sentinel(Document.from_value(dict(config)), diagnostics)
    assert parsed is not None, list(diagnostics)
    return parsed


def watcher(*types: str, strategy: str = "immediate", **execution: Any) -> SentinelConfig:
    """A sentinel on these types (default: every open one)."""
    return sentinel_config(
        {
            "id": "watcher",
            "name": "Watcher",
            "model": "builtin/echo",
            "userPromptText": "{{ it.events }}",
            "trigger": {"type": "event", "on": list(types) or ["*"]},
            "execution": {"strategy": strategy, **execution},
        }
    )


def fires(config: SentinelConfig, source: Source | Path, *, drain: bool = True, **options: Any) -> list[Fire]:
    """What the sentinel would do; a path is opened with ``options``."""
    if isinstance(source, Path):
        source = open_source(str(source), Path("/nowhere"), **options)
    return list(Attempt(config).fires(source, Redactor(enabled=False), drain=drain))


def ids(found: Sequence[Fire]) -> list[list[str]]:
    """The event ids of each."""
    return [[one.id for one in fire.batch.events] for fire in found]


def seen_by(found: Sequence[Fire]) -> list[str]:
    """The event ids of all of them, in order."""
    return [event_id for fired in ids(found) for event_id in fired]
