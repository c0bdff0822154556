"""Where triggers wait: found by event type and by a value that must stand at a path."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hankwatch.events.envelope import EventData
from hankwatch.matching.conditions import (
    Condition,
    EqualityCondition,
    MembershipCondition,
    equality_key,
    path_reader,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slot:
    """A type, and perhaps one value that must stand at one path of the data."""

    type: str
    path: str | None = None
    value: Hashable = None


@dataclass(slots=True)
class _Values(Generic[T]):
    """Who wants which value at one path."""

    read: Callable[[EventData], Any]
    buckets: dict[Hashable, dict[int, T]] = field(default_factory=dict)


@dataclass(slots=True)
class _Table(Generic[T]):
    """Who waits for one type."""

    always: dict[int, T] = field(default_factory=dict)
    by_path: dict[str, _Values[T]] = field(default_factory=dict)


class Slots(Generic[T]):
    """Items in slots, each under its number; finding those of an event does not touch the others."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table[T]] = {}

    def find(self, names: Sequence[str], data: EventData) -> list[T]:
        """The items that an event of these names may concern, in the order of their numbers."""
        found: list[tuple[int, T]] = []
        for name in names:
            table = self._tables.get(name)
            if table is not None:
                found += table.always.items()
                for values in table.by_path.values():
                    wanting = values.buckets.get(equality_key(values.read(data)))
                    if wanting:
                        found += wanting.items()
        if len(found) > 1:
            found.sort(key=_number)
        return [item for _, item in found]

    def put(self, slot: Slot, number: int, item: T) -> None:
        """Place an item; a slot holds any number of them."""
        table = self._tables.setdefault(slot.type, _Table())
        if slot.path is None:
            table.always[number] = item
            return
        values = table.by_path.get(slot.path)
        if values is None:
            values = table.by_path[slot.path] = _Values(path_reader(slot.path))
        values.buckets.setdefault(slot.value, {})[number] = item

    def take(self, slot: Slot, number: int) -> None:
        """Remove an item that was placed there, and what is empty without it."""
        table = self._tables[slot.type]
        if slot.path is None:
            del table.always[number]
        else:
            buckets = table.by_path[slot.path].buckets
            del buckets[slot.value][number]
            if not buckets[slot.value]:
                del buckets[slot.value]
            if not buckets:
                del table.by_path[slot.path]
        if not table.always and not table.by_path:
            del self._tables[slot.type]

    def best(self, types: Sequence[str], conditions: Sequence[Condition]) -> tuple[Slot, ...]:
        """Slots for something that wants one of the types and all the conditions: by the equality that the
        fewest others want, or by type alone where there is none.
        """
        guards = [
            tuple(Slot(name, condition.path, value) for name in types for value in values)
            for condition in conditions
            if (values := _wanted(condition))
        ]
        return min(guards, key=self._crowd) if guards else tuple(Slot(name) for name in types)

    def _crowd(self, slots: tuple[Slot, ...]) -> int:
        return max((self._count(slot) for slot in slots), default=0)

    def _count(self, slot: Slot) -> int:
        table = self._tables.get(slot.type)
        values = table.by_path.get(slot.path) if table and slot.path is not None else None
        return len(values.buckets.get(slot.value, ())) if values else 0


def _wanted(condition: Condition) -> set[Hashable]:
    """The values of which the condition wants one, or none when it is not an equality."""
    if isinstance(condition, MembershipCondition) and condition.operator == "in":
        return set(map(equality_key, condition.value))
    if isinstance(condition, EqualityCondition) and condition.operator == "equals":
        return {equality_key(condition.value)}
    return set()


def _number(item: tuple[int, Any]) -> int:
    return item[0]
