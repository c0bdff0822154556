"""Why a trigger did not match: what was found where a condition wanted something else (spec cli, ``try --where``).

The conditions and automata are the ones that matching uses, asked without the index in front of them.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hankwatch.core.text import shorten
from hankwatch.events.catalogue import routing
from hankwatch.events.envelope import Event, Routing
from hankwatch.matching.conditions import MISSING, Condition, Conditions, compile_conditions
from hankwatch.matching.sequences import Automaton, Correlated, Step
from hankwatch.matching.triggers import ANY, MAX_OVERRUNS, EventTrigger, SequenceTrigger, automaton_of, considers

MAX_VALUES = 50
"""Different values that are told apart for each condition."""
MAX_EXAMPLES = 3
"""Events that are named for each condition."""
NOTHING = "nothing there"
"""What is found at a path that leads nowhere."""
_VALUE_CHARS = 40


@dataclass(slots=True)
class ConditionMisses:
    """The events of one type that did not meet one condition."""

    condition: Condition
    count: int = 0
    alone: int = 0
    """Of these, the events that met all the other conditions."""
    found: Counter[str] = field(default_factory=Counter)
    """What stood at the path: JSON, shortened."""
    other: int = 0
    """Events with further values."""
    examples: list[str] = field(default_factory=list)
    """Ids of the first events."""

    def note(self, event: Event, found: Any, *, alone: bool) -> None:
        """Count one more."""
        self.count += 1
        self.alone += alone
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(event.id)
        value = shown_value(found)
        if value in self.found or len(self.found) < MAX_VALUES:
            self.found[value] += 1
        else:
            self.other += 1


@dataclass(slots=True)
class TypeMisses:
    """The events of one type that could have been a step."""

    type: str
    conditions: tuple[ConditionMisses, ...]
    """As the trigger has them."""
    asked: int = 0
    fitted: int = 0


@dataclass(slots=True)
class StepMisses:
    """One step, or the whole of a trigger on single events."""

    wanted: tuple[str, ...]
    """Types."""
    conditions: Sequence[Condition]
    compiled: Conditions
    """The same, ready to be asked."""
    asked: int = 0
    """Events that came when this step was waited for."""
    fitted: int = 0
    """Those that were it."""
    by_type: dict[str, TypeMisses] = field(default_factory=dict)
    """Those of a type that was wanted."""
    others: Counter[str] = field(default_factory=Counter)
    """Those of other types."""

    def fits(self, event: Event) -> bool:
        """Whether ``event`` is this step; noted either way."""
        self.asked += 1
        if not considers(self.wanted, event.type):
            self.others[event.type] += 1
            return False
        seen = self.by_type.get(event.type)
        if seen is None:
            counters = tuple(ConditionMisses(condition) for condition in self.conditions)
            seen = self.by_type[event.type] = TypeMisses(event.type, counters)
        seen.asked += 1
        unmet = self.compiled.unmet(event.data)
        for place, found in unmet:
            seen.conditions[place].note(event, found, alone=len(unmet) == 1)
        seen.fitted += not unmet
        self.fitted += not unmet
        return not unmet


class NearMisses:
    """Follows one trigger through a stream and keeps why it did not match; bounded, however long that is."""

    def __init__(self, trigger: EventTrigger | SequenceTrigger) -> None:
        """Raises ``RegexInvalid``."""
        self.trigger = trigger
        self.types: Counter[str] = Counter()
        """Every event that triggers can see, by type."""
        self.matched = 0
        self._overruns = 0
        self._unrelated = 0
        self._automaton: Automaton | None = None
        self.late: Counter[int] = Counter()
        """Beginnings that the limit of time ended, by how many steps they had."""
        self.shortest_late_ms: int | None = None
        """How long the quickest of those with all steps took."""
        self.steps: tuple[StepMisses, ...]
        if isinstance(trigger, EventTrigger):
            self.steps = (self._step(tuple(trigger.on), trigger.conditions),)
            self._on: Sequence[str] = trigger.on
        else:
            self._on = trigger.interest_filter.on
            self.steps = tuple(
                self._step(tuple(self._on) if step.type == ANY else (step.type,), step.conditions)
                for step in trigger.pattern
            )
        self.start_afresh()

    def start_afresh(self) -> None:
        """Forget what had begun, as another load of the sentinel does; what was counted stays."""
        self._unrelated = self.unrelated
        if isinstance(self.trigger, SequenceTrigger):
            asked: list[Step] = [step.fits for step in self.steps]
            self._automaton = automaton_of(self.trigger, asked, self._late)

    def feed(self, event: Event) -> bool:
        """Take the next event; whether it completes a match, which is what ``TriggerIndex.route`` finds too."""
        if routing(event.type, event.data) is Routing.NEVER:
            return False
        self.types[event.type] += 1
        if not considers(self._on, event.type) or self._overruns >= MAX_OVERRUNS:
            return False
        matched = self.steps[0].fits(event) if self._automaton is None else self._automaton.feed(event) is not None
        self.matched += matched
        return matched

    @property
    def unseen(self) -> list[str]:
        """The types that the trigger names and that never occurred."""
        named = dict.fromkeys((*self._on, *(name for step in self.steps for name in step.wanted)))
        return [name for name in named if name != ANY and name not in self.types]

    @property
    def considered(self) -> int:
        """Events of the types that the trigger looks at."""
        return sum(count for name, count in self.types.items() if considers(self._on, name))

    @property
    def pending(self) -> int:
        """How many steps were taken of what had begun at the end."""
        return self._automaton.taken() if self._automaton is not None else 0

    @property
    def unrelated(self) -> int:
        """Events that had no value to be correlated by."""
        return self._unrelated + (self._automaton.unrelated if isinstance(self._automaton, Correlated) else 0)

    def _step(self, wanted: tuple[str, ...], conditions: Sequence[Condition]) -> StepMisses:
        return StepMisses(wanted, conditions, compile_conditions(conditions, self._overrun))

    def _overrun(self) -> None:
        self._overruns += 1

    def _late(self, taken: int, span_ms: int) -> None:
        self.late[taken] += 1
        if taken == len(self.steps):
            self.shortest_late_ms = min(span_ms, self.shortest_late_ms or span_ms)


def shown_value(value: Any) -> str:
    """A value as JSON on one line, shortened; ``NOTHING`` for none."""
    if value is MISSING:
        return NOTHING
    if isinstance(value, (dict, list)):
        members = "key" if isinstance(value, dict) else "item"
        return f"{type(value).__name__} with {len(value)} {members}{'s' * (len(value) != 1)}"
    if isinstance(value, str):
        value = shorten(value, _VALUE_CHARS)
    return shorten(json.dumps(value, ensure_ascii=False), _VALUE_CHARS + 2)
