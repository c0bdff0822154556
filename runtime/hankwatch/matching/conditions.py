"""Conditions on an event's data: the models of a config, and their compiled form (spec sentinels 2)."""

import re
from collections.abc import Callable, Hashable, Sequence
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, assert_never

from pydantic import Field

from hankwatch.config.validation import ConfigModel
from hankwatch.events.envelope import EventData
from hankwatch.matching.regexes import compile_js

Scalar = str | int | float | bool | None
Test = Callable[[Any], bool]
"""Whether a present value satisfies a condition."""

_INDEX = re.compile("0|[1-9][0-9]*")
_SCALARS = (str, int, float, NoneType)
_TRUE, _FALSE = object(), object()


class _Missing:
    """The type of ``MISSING``."""


MISSING = _Missing()
"""What a path leads to where the data has nothing."""


class _Condition(ConfigModel):
    path: str = Field(min_length=1)
    """Dotted path into the event's data, for example `toolInput.file_path`, `tags.0` or `content.length`."""


class EqualityCondition(_Condition):
    """The value is, or is not, the one given; equality is JSON's."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"value"})

    operator: Literal["equals", "notEquals"]
    """How the value at the path is compared."""
    value: Scalar
    """A string, number, boolean or null; 1 equals 1.0, and true never equals 1."""


class MembershipCondition(_Condition):
    """The value is one of those given, or none of them."""

    operator: Literal["in", "notIn"]
    """How the value at the path is compared."""
    value: list[Scalar] = Field(min_length=1)
    """Strings, numbers, booleans or nulls."""


class ContainmentCondition(_Condition):
    """The value is a string with this part in it, or a list with this member."""

    operator: Literal["contains", "notContains"]
    """How the value at the path is compared."""
    value: str
    """The part of a string, or the member of a list."""


class RegexCondition(_Condition):
    """The value is a string in which the pattern occurs."""

    operator: Literal["matches", "notMatches"]
    """How the value at the path is compared."""
    value: str
    """A regular expression in JavaScript's flavour; not anchored."""


class OrderCondition(_Condition):
    """The value is a number on one side of the one given."""

    operator: Literal["greaterThan", "greaterThanOrEqual", "lessThan", "lessThanOrEqual"]
    """How the value at the path is compared."""
    value: int | float
    """The bound."""


class ExistsCondition(_Condition):
    """The path is there (null counts), or is not."""

    operator: Literal["exists"]
    """Asks only whether the path is there."""
    value: bool
    """True: it must be there. False: it must be missing."""


Condition = Annotated[
    EqualityCondition | MembershipCondition | ContainmentCondition | RegexCondition | OrderCondition | ExistsCondition,
    Field(discriminator="operator"),
]
"""One condition of a trigger; all of a trigger's must hold."""


class Unmet(NamedTuple):
    """A condition that does not hold."""

    place: int
    """Its index among the conditions."""
    found: Any
    """What stands at its path, or ``MISSING``."""


class Conditions:
    """Compiled conditions of one trigger or step."""

    __slots__ = ("_tests",)

    def __init__(self, tests: Sequence[tuple[Callable[[EventData], Any], Test]]) -> None:
        self._tests = tuple(tests)

    def hold(self, data: EventData) -> bool:
        """Whether all of them hold; True without any."""
        for read, test in self._tests:  # noqa: SIM110 - a generator costs as much as the tests themselves
            if not test(read(data)):
                return False
        return True

    def unmet(self, data: EventData) -> tuple[Unmet, ...]:
        """All that do not hold; empty exactly when ``hold`` is True."""
        values = (read(data) for read, _ in self._tests)
        found = zip(self._tests, values, strict=True)
        return tuple(Unmet(index, value) for index, ((_, test), value) in enumerate(found) if not test(value))


def compile_conditions(conditions: Sequence[Condition], on_overrun: Callable[[], None] | None = None) -> Conditions:
    """The conditions, ready to be asked about any number of events.

    ``on_overrun`` is called when a pattern ran out of time (and so did not match). Raises ``RegexInvalid``.
    """
    return Conditions([(path_reader(c.path), compile_test(c, on_overrun)) for c in conditions])


def path_reader(path: str) -> Callable[[EventData], Any]:
    """A function from an event's data to the value at the path, or to ``MISSING``."""
    steps = path.split(".")
    if len(steps) == 1:
        key = steps[0]
        return lambda data: data.get(key, MISSING)

    def read(data: EventData) -> Any:
        value: Any = data
        for step in steps:
            if isinstance(value, dict):
                value = value.get(step, MISSING)
            elif isinstance(value, list):
                value = _of_list(value, step)
            elif isinstance(value, str) and step == "length":
                value = _utf16_length(value)
            else:
                return MISSING
        return value

    return read


def equality_key(value: Any) -> Hashable:
    """A key that two scalars share exactly when JSON calls them equal; ``MISSING`` for anything else."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return value if isinstance(value, _SCALARS) else MISSING


def compile_test(condition: Condition, on_overrun: Callable[[], None] | None = None) -> Test:
    """The condition's test of the value at its path. Raises ``RegexInvalid``."""
    if isinstance(condition, ExistsCondition):
        wanted = condition.value
        return lambda value: (value is not MISSING) is wanted
    positive = _positive_test(condition, on_overrun)
    if condition.operator in {"notEquals", "notIn", "notContains", "notMatches"}:
        return lambda value: value is not MISSING and not positive(value)
    return positive


def _positive_test(
    condition: EqualityCondition | MembershipCondition | ContainmentCondition | RegexCondition | OrderCondition,
    on_overrun: Callable[[], None] | None,
) -> Test:
    if isinstance(condition, EqualityCondition):
        wanted = equality_key(condition.value)
        return lambda value: equality_key(value) == wanted
    if isinstance(condition, MembershipCondition):
        members = frozenset(map(equality_key, condition.value))
        return lambda value: equality_key(value) in members
    if isinstance(condition, ContainmentCondition):
        part = condition.value
        return lambda value: isinstance(value, (str, list)) and part in value
    if isinstance(condition, RegexCondition):
        search = compile_js(condition.value, on_overrun).search
        return lambda value: isinstance(value, str) and search(value)
    return _order_test(condition)


def _order_test(condition: OrderCondition) -> Test:
    bound = condition.value
    match condition.operator:
        case "greaterThan":
            return lambda value: _is_number(value) and value > bound
        case "greaterThanOrEqual":
            return lambda value: _is_number(value) and value >= bound
        case "lessThan":
            return lambda value: _is_number(value) and value < bound
        case "lessThanOrEqual":
            return lambda value: _is_number(value) and value <= bound
        case _:
            assert_never(condition.operator)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of_list(value: list[Any], step: str) -> Any:
    if step == "length":
        return len(value)
    if len(step) <= 10 and _INDEX.fullmatch(step) and int(step) < len(value):
        return value[int(step)]
    return MISSING


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
