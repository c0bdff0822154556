"""Sentinels side by side: what each said, newest first, beside the events that caused it."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from hankwatch.events.envelope import Event
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fires import Fire, SentinelFacts
from hankwatch.pages.rows import EventRow
from hankwatch.pages.visible import Excerpt

_ENTRY_CHARS: Final = 1_200
_NEAR_BYTES: Final = 2 * 1024 * 1024
"""Of the journal before a fire, where its causes are looked for."""
FindBack = Callable[[Collection[str], int, int], Iterable[Event]]
"""The events of these ids that end behind one cursor and no later than another, the last one first."""


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


def sentinel_lanes(facts: RunFacts, find: FindBack, measure: Measure, only: str | None = None) -> list[SentinelLane]:
    """The lanes of a run's sentinels, or the one of ``only``, with the events of their fires from ``find``."""
    lanes = [
        SentinelLane(number, sentinel, list(_fires(sentinel, measure)))
        for number, sentinel in enumerate(facts.sentinels, 1)
        if only in {None, sentinel.id}
    ]
    shown = [fire for lane in lanes for fire in lane.fires]
    rows = _rows(sorted(shown, key=lambda fire: -fire.fire.cursor), find, measure)
    for fire in shown:
        found = (rows[event_id] for event_id in _cited(fire, measure) if event_id in rows)
        fire.causes = sorted(found, key=lambda row: row.cursor)
    return lanes


def _fires(sentinel: SentinelFacts, measure: Measure) -> Iterable[LaneFire]:
    for fire in list(sentinel.fires)[: -measure.fires - 1 : -1]:
        left_out = fire.content.left_out + max(0, len(fire.content.text) - measure.entry_chars)
        yield LaneFire(replace(fire), Excerpt(fire.content.text[: measure.entry_chars], left_out))


def _cited(fire: LaneFire, measure: Measure) -> tuple[str, ...]:
    return fire.fire.event_ids[: measure.causes]


def _rows(fires: Iterable[LaneFire], find: FindBack, measure: Measure) -> dict[str, EventRow]:
    """A row for each cause that lies near its fire; goes through no stretch twice, and no further than it has to.

    Args:
        fires: The last one first.
        find: Where they are.
        measure: How many of each.
    """
    fires = list(fires)
    wanted = {event_id for fire in fires for event_id in _cited(fire, measure)}
    rows: dict[str, EventRow] = {}
    behind: int | None = None
    for fire in fires:
        missing = {event_id for event_id in _cited(fire, measure) if event_id not in rows}
        until = fire.fire.cursor if behind is None else min(behind, fire.fire.cursor)
        after = max(0, fire.fire.cursor - _NEAR_BYTES)
        if not missing or until <= after:
            continue
        behind = after
        for event in find(wanted, after, until):
            rows[event.id] = EventRow.of(event)
            missing.discard(event.id)
            if not missing:
                behind = event.cursor - event.size_bytes
                break
    return rows
