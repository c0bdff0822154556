"""The catalogue: every event type, its payload model, its routing, and the paths a condition may name."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hankwatch.events.activity import ACTIVITY_PAYLOADS
from hankwatch.events.envelope import EventData, Routing
from hankwatch.events.observers import NAMED_PAYLOADS, SENTINEL_PAYLOADS
from hankwatch.events.payload import Payload, Shape
from hankwatch.events.run import RUN_PAYLOADS, StateTransition

PAYLOADS: Mapping[str, type[Payload]] = MappingProxyType(
    {p.TYPE: p for p in (*RUN_PAYLOADS, *ACTIVITY_PAYLOADS, *SENTINEL_PAYLOADS, *NAMED_PAYLOADS)}
)
"""Type name to payload model, for every type this runtime emits."""

KNOWN_TYPES: frozenset[str] = frozenset(PAYLOADS)
OPEN_TYPES: frozenset[str] = frozenset(p.TYPE for p in (*RUN_PAYLOADS, *ACTIVITY_PAYLOADS))
"""The 27 types that ``"*"`` means."""
CONNECTION_TYPES: frozenset[str] = frozenset({"server.ready", "pong", "history.batch", "incomplete.codon"})
"""Messages of the WebSocket protocol that look like events; none is journaled or routed."""

_NAMED_TYPES = frozenset(p.TYPE for p in NAMED_PAYLOADS)
_ANYTHING: Any = Any


def routing(type_name: str, data: EventData) -> Routing:
    """Which triggers an event of this type and payload can reach (spec events, routing table)."""
    if type_name in OPEN_TYPES:
        if type_name == StateTransition.TYPE and data.get("transitionType") == "SentinelStatesUpdated":
            return Routing.NEVER
        return Routing.OPEN
    return Routing.NAMED if type_name in _NAMED_TYPES else Routing.NEVER


def has_path(type_name: str, path: str) -> bool:
    """Whether a payload of this type can hold something at a condition's dotted path.

    ``"*"`` asks about all open types. Lists and strings have ``length``, lists have decimal indexes, and
    below a free-form object anything may follow (spec sentinels 2). False for an unknown type.
    """
    return any(True for _ in _found(type_name, path))


def enum_values(type_name: str, path: str) -> frozenset[str] | None:
    """The strings possible at a path, or None where others are possible (or the path does not exist)."""
    found = list(_found(type_name, path))
    if not found or any(get_origin(annotation) is not Literal for annotation in found):
        return None
    values = [value for annotation in found for value in get_args(annotation)]
    return frozenset(values) if all(isinstance(value, str) for value in values) else None


def _found(type_name: str, path: str) -> Iterator[Any]:
    names = OPEN_TYPES if type_name == "*" else (type_name,)
    for name in names:
        if (model := PAYLOADS.get(name)) is not None:
            yield from _resolve(model, path.split("."))


def _resolve(annotation: Any, keys: list[str]) -> Iterator[Any]:
    """The annotations that a path ends at, without None."""
    for alternative in _alternatives(annotation):
        if not keys or alternative is _ANYTHING:
            yield alternative
        else:
            for child in _children(alternative, keys[0]):
                yield from _resolve(child, keys[1:])


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _alternatives(member)
    elif annotation is not NoneType:
        yield annotation


def _children(annotation: Any, key: str) -> Iterator[Any]:
    """What ``annotation`` may hold at one key."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        by_alias = {info.alias or name: info.annotation for name, info in annotation.model_fields.items()}
        if key in by_alias:
            yield by_alias[key]
        elif annotation.model_config.get("extra") == "allow":
            yield _ANYTHING
    elif origin is dict:
        yield arguments[1]
    elif origin is list:
        if key == "length":
            yield int
        elif key.isascii() and key.isdigit():
            yield arguments[0]
    elif key == "length" and (annotation is str or (origin is Literal and isinstance(arguments[0], str))):
        yield int
