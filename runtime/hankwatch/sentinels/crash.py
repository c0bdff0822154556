"""What a crash left loaded: sentinels whose journal has a load and no unload (design "How it runs" 7)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hankwatch.events.envelope import Event
from hankwatch.sentinels.fire import Account

LIFECYCLE_TYPES = frozenset(
    {"sentinel.loaded", "sentinel.triggered", "sentinel.output", "sentinel.error", "sentinel.unloaded"}
)
"""The events that tell."""
_CALLS = {"llm-call-failed": 1, "structured-output-invalid": 2}
"""Model calls that an error stands for, at least."""


@dataclass(slots=True)
class LeftLoaded:
    """One such sentinel, as far as its events tell."""

    sentinel_id: str
    codon_id: str
    base_codon_id: str | None
    source_path: str | None
    log_file: str | None
    last_value_file: str | None
    account: Account = field(default_factory=Account)
    unfinished: dict[int, list[str]] = field(default_factory=dict)
    """Triggers that were begun and have no end: number to event ids."""

    @property
    def identity(self) -> dict[str, Any]:
        """What every event about it begins with."""
        return {"sentinel_id": self.sentinel_id, "codon_id": self.codon_id, "base_codon_id": self.base_codon_id}


def left_loaded(events: Iterable[Event]) -> list[LeftLoaded]:
    """The sentinels that are loaded at the end of these events, in load order."""
    left: dict[tuple[str, str], LeftLoaded] = {}
    for event in events:
        if event.type not in LIFECYCLE_TYPES:
            continue
        data = event.data
        key = (data["sentinelId"], data["codonId"])
        if event.type == "sentinel.loaded":
            report = data.get("report") or {}
            left[key] = LeftLoaded(
                *key,
                data.get("baseCodonId"),
                data.get("sourcePath"),
                report.get("logFile"),
                report.get("lastValueFile"),
            )
        elif event.type == "sentinel.unloaded":
            left.pop(key, None)
        elif key in left:
            _follow(left[key], event)
    return list(left.values())


def _follow(sentinel: LeftLoaded, event: Event) -> None:
    data = event.data
    if event.type == "sentinel.triggered":
        sentinel.unfinished[data["triggerNumber"]] = data.get("eventIds", [])
    elif event.type == "sentinel.output":
        sentinel.account.begin(event.timestamp)
        sentinel.account.end(data["cost"])
        sentinel.unfinished.pop(data["triggerNumber"], None)
    else:
        for _ in range(_CALLS.get(data["errorType"], 0)):
            sentinel.account.begin(event.timestamp)
        for number in (data.get("triggerNumber", 0), *data.get("triggerNumbers", ())):
            sentinel.unfinished.pop(number, None)
