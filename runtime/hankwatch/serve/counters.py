"""What a journal's events count to: the numbers of ``/metrics`` (ids never become labels)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hankwatch.events.catalogue import KNOWN_TYPES
from hankwatch.events.envelope import Event
from hankwatch.pages.fires import cost_of, count_of

LATENCIES_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets in which fires are counted by how long they took."""
_MAX_OPEN: Final = 10_000
OTHER: Final = "other"


@dataclass(slots=True)
class Counters:
    """Of whole journals, all runs together; memory does not grow with them."""

    events: Counter[str] = field(default_factory=Counter)
    """By type; those of no type of the contract are counted as ``other``."""
    fires: Counter[str] = field(default_factory=Counter)
    """Triggers of sentinels by what came of them: answered, failed."""
    fired: int = 0
    dropped: int = 0
    """Triggers that did not fit into a queue."""
    dropped_events: int = 0
    """Events in those."""
    abandoned: int = 0
    """Triggers given up at an end."""
    calls: int = 0
    """Model calls of sentinels: those that a trigger ended with, and at its unloading all that it has made."""
    tokens: Counter[str] = field(default_factory=Counter)
    """By direction, of agents and sentinels: ``(agent|sentinel) (input|output)``."""
    agent_cost_usd: float = 0.0
    """As far as it is known; a codon's at its end."""
    sentinel_cost_usd: float = 0.0
    """As far as it is known."""
    watchdog: Counter[str] = field(default_factory=Counter)
    """Actions: nudge, interrupt."""
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCIES_S) + 1))
    """Fires by how long they took, one for each bucket and one for all longer ones."""
    latency_sum_s: float = 0.0
    waiting: int = 0
    """Triggers without an end so far: they wait or are being asked about."""
    _open: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Triggers without an end -> when they were triggered."""
    _called: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Sentinels that are loaded -> their calls so far."""
    _used: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Codons without an end -> their tokens so far."""

    def take(self, event: Event) -> None:
        """Count one event."""
        self.events[event.type if event.type in KNOWN_TYPES else OTHER] += 1
        data = event.data
        match event.type:
            case "sentinel.triggered":
                self.fired += 1
                if len(self._open) < _MAX_OPEN:
                    self._open[_key(event)] = event.at_ms
            case "sentinel.output":
                self._end(event, "answered")
                self._call(event)
                self.sentinel_cost_usd += cost_of(data.get("cost")).known_usd
                if isinstance(tokens := data.get("tokens"), dict):
                    self._spend("sentinel", tokens.get("input"), tokens.get("output"))
            case "sentinel.error":
                self._of_error(event)
            case "sentinel.unloaded":
                self.dropped += count_of(data.get("droppedTriggers"))
                self.dropped_events += count_of(data.get("droppedEvents"))
                self.calls += max(0, count_of(data.get("llmCallCount")) - self._called.pop(_key(event)[:2], 0))
            case "token.usage":
                self._of_usage(event)
            case "watchdog.nudge" | "watchdog.interrupt":
                self.watchdog[event.type.partition(".")[2]] += 1
            case _:
                pass
        self.waiting = len(self._open)

    def _of_error(self, event: Event) -> None:
        data = event.data
        if data.get("errorType") == "abandoned":
            self.abandoned += count_of(data.get("count"))
            numbers = data.get("triggerNumbers")
            for number in numbers if isinstance(numbers, list) else ():
                self._open.pop((*_key(event)[:2], count_of(number)), None)
        elif data.get("triggerNumber") is not None and data.get("errorType") != "file-write-failed":
            self._end(event, "failed")
            if data.get("errorType") == "llm-call-failed":
                self._call(event)

    def _call(self, event: Event) -> None:
        sentinel = _key(event)[:2]
        if sentinel in self._called or len(self._called) < _MAX_OPEN:
            self._called[sentinel] += 1
            self.calls += 1

    def _of_usage(self, event: Event) -> None:
        """Increments as they come; a final one adds what they have left out."""
        data, codon_id = event.data, str(event.data.get("codonId"))
        taken, given = count_of(data.get("inputTokens")), count_of(data.get("outputTokens"))
        before = self._used.get(codon_id, (0, 0))
        if data.get("isFinal") is True:
            self.agent_cost_usd += cost_of(data.get("totalCost")).known_usd
            self._used.pop(codon_id, None)
            self._spend("agent", max(0, taken - before[0]), max(0, given - before[1]))
        else:
            if codon_id in self._used or len(self._used) < _MAX_OPEN:
                self._used[codon_id] = before[0] + taken, before[1] + given
            self._spend("agent", taken, given)

    def _end(self, event: Event, outcome: str) -> None:
        self.fires[outcome] += 1
        began_ms = self._open.pop(_key(event), None)
        if began_ms is not None:
            took_s = max(0, event.at_ms - began_ms) / 1000
            self.latencies[bucket_of(took_s, LATENCIES_S)] += 1
            self.latency_sum_s += took_s

    def _spend(self, who: str, taken: object, given: object) -> None:
        self.tokens[f"{who} input"] += count_of(taken)
        self.tokens[f"{who} output"] += count_of(given)


def bucket_of(value: float, bounds: Sequence[float]) -> int:
    """Which bucket a value falls into: the first whose bound it does not pass, or one behind the last."""
    return next((index for index, bound in enumerate(bounds) if value <= bound), len(bounds))


def _key(event: Event) -> tuple[str, str, int]:
    data = event.data
    return str(data.get("sentinelId")), str(data.get("codonId")), count_of(data.get("triggerNumber"))
