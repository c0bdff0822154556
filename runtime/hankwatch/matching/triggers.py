"""Triggers: their models, and the index that asks only the ones an event can concern (spec sentinels 3)."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field, StringConstraints

from hankwatch.config.validation import ConfigModel
from hankwatch.core.contain import contain
from hankwatch.events.catalogue import OPEN_TYPES, routing
from hankwatch.events.envelope import Event, Routing
from hankwatch.matching.conditions import Condition, compile_conditions, path_reader
from hankwatch.matching.sequences import Automaton, Correlated, Found, Late, Step, make_automaton
from hankwatch.matching.slots import Slot, Slots

MAX_OVERRUNS = 3
"""How often an owner's patterns may run out of time before it is given up."""
MAX_STEPS = 1_000
"""A prompt shows at most this many events of one match."""
MAX_STEPS_WITHIN = 100
"""Steps of a pattern with `withinMilliseconds`."""
ANY = "*"
"""Every open-routed type."""

TypeName = Annotated[str, StringConstraints(min_length=1)]


class EventTrigger(ConfigModel):
    """Matches single events."""

    type: Literal["event"]
    """Single events."""
    on: list[TypeName] = Field(min_length=1)
    """Event types, or `*` for every type that reaches sentinels by default."""
    conditions: list[Condition] = Field(default=[])
    """All of them must hold on the event's data."""


class InterestFilter(ConfigModel):
    """Which events a sequence considers."""

    on: list[TypeName] = Field(min_length=1)
    """Event types, or `*`; all others are as if they did not happen."""


class SequenceStep(ConfigModel):
    """One step of a pattern."""

    type: TypeName
    """An event type of the interest filter, or `*` for any considered event."""
    conditions: list[Condition] = Field(default=[])
    """All of them must hold on the event's data."""


class SequenceOptions(ConfigModel):
    """How the steps of a pattern follow each other."""

    consecutive: bool = True
    """True: on adjacent considered events. False: in order, others may come between."""
    within_milliseconds: int | None = Field(default=None, ge=1, le=604_800_000)
    """Longest time from the first event of a match to its last."""
    correlate_by: Annotated[str, StringConstraints(min_length=1)] | None = None
    """Path to a value, for example `toolUseId`: only events that have the same one there form a match."""


class SequenceTrigger(ConfigModel):
    """Matches several events, one for each step of a pattern."""

    type: Literal["sequence"]
    """Several events."""
    interest_filter: InterestFilter
    """Which events are considered at all."""
    pattern: list[SequenceStep] = Field(min_length=1, max_length=MAX_STEPS)
    """The steps, in order."""
    options: SequenceOptions = SequenceOptions()
    """How the steps follow each other."""


Trigger = Annotated[EventTrigger | SequenceTrigger, Field(discriminator="type")]
"""What a sentinel waits for."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Match(Generic[K]):
    """One match of one trigger."""

    key: K
    """Whose trigger it was."""
    events: tuple[Event, ...]
    """The event, or a sequence's events in order; the last is the one just routed."""


@dataclass(slots=True, eq=False)
class _Entry(Generic[K]):
    key: K
    number: int
    feed: Callable[[Event], Found]
    slots: tuple[Slot, ...] = ()
    overruns: int = 0
    dropped: Callable[[], int] = lambda: 0


class TriggerIndex(Generic[K]):
    """All triggers that listen to one stream.

    Entries are found by event type and by one of their equality conditions, a sequence that waits for its
    first step by that step's, so an event's cost grows with the triggers it may concern and not with all.
    Used only on the loop's thread.
    """

    def __init__(self, on_resource: Callable[[K, str], None]) -> None:
        """``on_resource(key, reason)`` is told of a trigger that was given up (and is removed already):
        its patterns ran out of time ``MAX_OVERRUNS`` times, or it failed. Called while an event is routed.
        """
        self._on_resource = on_resource
        self._entries: dict[K, _Entry[K]] = {}
        self._slots: Slots[_Entry[K]] = Slots()
        self._attached = 0

    def add(self, key: K, trigger: EventTrigger | SequenceTrigger) -> None:
        """Attach a trigger under a new key; it sees the events routed from the next one on.

        Raises ``RegexInvalid`` for a pattern that cannot be compiled, ``ValueError`` for a key in use.
        """
        if key in self._entries:
            raise ValueError(f"{key!r} has a trigger already")
        self._attached += 1
        entry = _Entry(key, self._attached, lambda _: None)
        if isinstance(trigger, EventTrigger):
            self._prepare_event(entry, trigger)
        else:
            self._prepare_sequence(entry, trigger)
        self._entries[key] = entry

    def remove(self, key: K) -> None:
        """Detach; its pending matches are forgotten. Any time, also while routing; a second time is harmless."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._place(entry, ())

    def dropped(self, key: K) -> int:
        """How many pending correlations of this trigger were given up for newer ones."""
        entry = self._entries.get(key)
        return entry.dropped() if entry else 0

    def route(self, event: Event) -> list[Match[K]]:
        """The matches that this event completes, in the order in which their triggers were attached."""
        reach = routing(event.type, event.data)
        if reach is Routing.NEVER:
            return []
        names = (event.type, ANY) if reach is Routing.OPEN else (event.type,)
        candidates = self._slots.find(names, event.data)
        return self._ask(event, candidates) if candidates else []

    def _ask(self, event: Event, candidates: Sequence[_Entry[K]]) -> list[Match[K]]:
        matches: list[Match[K]] = []
        asked = 0

        def give_up(error: Exception) -> None:
            self._give_up(candidates[asked - 1], f"matching failed: {error!r}")

        while asked < len(candidates):
            # One boundary around all of them, entered again after a failure with those that are left.
            with contain(give_up):
                while asked < len(candidates):
                    entry = candidates[asked]
                    asked += 1
                    found = entry.feed(event) if self._holds(entry) else None
                    if found is not None:
                        matches.append(Match(entry.key, found))
        return [match for match in matches if match.key in self._entries]

    def _holds(self, entry: _Entry[K]) -> bool:
        return self._entries.get(entry.key) is entry

    def _give_up(self, entry: _Entry[K], reason: str) -> None:
        if self._holds(entry):
            self.remove(entry.key)
            self._on_resource(entry.key, reason)

    def _overrun(self, entry: _Entry[K]) -> None:
        entry.overruns += 1
        if entry.overruns == MAX_OVERRUNS:
            self._give_up(entry, f"its regular expressions ran out of time {MAX_OVERRUNS} times")

    def _prepare_event(self, entry: _Entry[K], trigger: EventTrigger) -> None:
        conditions = compile_conditions(trigger.conditions, lambda: self._overrun(entry))
        entry.feed = lambda event: (event,) if conditions.hold(event.data) else None
        self._place(entry, self._slots.best(_type_names(trigger.on), trigger.conditions))

    def _prepare_sequence(self, entry: _Entry[K], trigger: SequenceTrigger) -> None:
        options = trigger.options
        automaton = automaton_of(trigger, [self._step(entry, step) for step in trigger.pattern])
        if isinstance(automaton, Correlated):
            entry.dropped = lambda: automaton.dropped
        on = trigger.interest_filter.on
        first = trigger.pattern[0]
        at_rest = self._slots.best(_types_of(first, on), first.conditions)
        at_work = tuple(map(Slot, _type_names(on) if options.consecutive else _types_of_all(trigger.pattern, on)))

        def feed(event: Event) -> Found:
            found = automaton.feed(event)
            slots = at_rest if automaton.idle(event.at_ms) else at_work
            if slots != entry.slots and self._holds(entry):
                self._place(entry, slots)
            return found

        entry.feed = feed
        self._place(entry, at_rest)

    def _step(self, entry: _Entry[K], step: SequenceStep) -> Step:
        hold = compile_conditions(step.conditions, lambda: self._overrun(entry)).hold
        if step.type == ANY:
            return lambda event: hold(event.data)
        name = step.type
        return lambda event: event.type == name and hold(event.data)

    def _place(self, entry: _Entry[K], slots: tuple[Slot, ...]) -> None:
        for slot in entry.slots:
            self._slots.take(slot, entry.number)
        entry.slots = slots
        for slot in slots:
            self._slots.put(slot, entry.number, entry)


def automaton_of(
    trigger: SequenceTrigger,
    steps: Sequence[Step],
    late: Late = lambda taken, span_ms: None,  # noqa: ARG005 - who only wants matches does not listen
) -> Automaton:
    """What follows a trigger's pattern, its ``steps`` compiled."""
    options = trigger.options
    return make_automaton(
        steps,
        consecutive=options.consecutive,
        within_ms=options.within_milliseconds,
        correlate_by=path_reader(options.correlate_by) if options.correlate_by else None,
        late=late,
    )


def considers(on: Sequence[str], type_name: str) -> bool:
    """Whether a list of types, perhaps with ``*`` in it, covers this type."""
    return type_name in on or (ANY in on and (type_name == ANY or type_name in OPEN_TYPES))


def _type_names(on: Sequence[str]) -> tuple[str, ...]:
    """The list without repetitions, and without what ``*`` covers: no event finds an entry twice."""
    return tuple(dict.fromkeys(name for name in on if name == ANY or ANY not in on or name not in OPEN_TYPES))


def _types_of(step: SequenceStep, on: Sequence[str]) -> tuple[str, ...]:
    """The considered types that can be this step."""
    if step.type == ANY:
        return _type_names(on)
    return (step.type,) if considers(on, step.type) else ()


def _types_of_all(pattern: Sequence[SequenceStep], on: Sequence[str]) -> tuple[str, ...]:
    return _type_names([name for step in pattern for name in _types_of(step, on)])
