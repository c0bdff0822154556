"""Sentinels side by side: what each said, newest first, beside the events that caused it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fires import Fire, SentinelFacts
from hankwatch.pages.gather import FindEvents
from hankwatch.pages.rows import EventRow
from hankwatch.pages.visible import Excerpt

_ENTRY_CHARS: Final = 1_200


@dataclass(frozen=True, slots=True)
class Measure:
    """How much of each sentinel is shown."""

    fires: int
    causes: int
    """Of each fire, the first."""
    entry_chars: int


BESIDE: Final = Measure(8, 3, _ENTRY_CHARS)
"""Many sentinels."""
ALONE: Final = Measure(60, 12, 20_000)
"""One."""


@dataclass(slots=True)
class LaneFire:
    """One fire in its lane."""

    fire: Fire
    entry: Excerpt
    causes: list[EventRow] = field(default_factory=list)
    """Events that it was made of, in journal order."""

    @property
    def others(self) -> int:
        """Its events that do not stand beside it."""
        return max(0, self.fire.event_count - len(self.causes))


@dataclass(slots=True)
class SentinelLane:
    """One sentinel."""

    number: int
    """Its place among all of the run, from 1."""
    sentinel: SentinelFacts
    fires: list[LaneFire]
    """The newest first."""

    @property
    def left_out(self) -> int:
        """Older fires that are not shown."""
        return self.sentinel.fired - len(self.fires)


def sentinel_lanes(facts: RunFacts, find: FindEvents, measure: Measure, only: str | None = None) -> list[SentinelLane]:
    """The lanes of a run's sentinels, or the one of ``only``, with the events of their fires from ``find``."""
    lanes = [
        SentinelLane(number, sentinel, list(_fires(sentinel, measure)))
        for number, sentinel in enumerate(facts.sentinels, 1)
        if only in {None, sentinel.id}
    ]
    shown = [fire for lane in lanes for fire in lane.fires]
    rows = _rows({event_id for fire in shown for event_id in _cited(fire, measure)}, find)
    for fire in shown:
        fire.causes = sorted(
            (rows[event_id] for event_id in _cited(fire, measure) if event_id in rows), key=lambda row: row.cursor
        )
    return lanes


def _fires(sentinel: SentinelFacts, measure: Measure) -> Iterable[LaneFire]:
    for fire in list(sentinel.fires)[: -measure.fires - 1 : -1]:
        left_out = fire.content.left_out + max(0, len(fire.content.text) - measure.entry_chars)
        yield LaneFire(replace(fire), Excerpt(fire.content.text[: measure.entry_chars], left_out))


def _cited(fire: LaneFire, measure: Measure) -> tuple[str, ...]:
    return fire.fire.event_ids[: measure.causes]


def _rows(ids: Collection[str], find: FindEvents) -> dict[str, EventRow]:
    """One row for each id; looks no further than for the last of them."""
    rows: dict[str, EventRow] = {}
    if ids:
        for event in find(ids):
            rows[event.id] = EventRow.of(event)
            if len(rows) == len(ids):
                break
    return rows
