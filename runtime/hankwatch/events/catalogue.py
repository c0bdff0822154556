"""The catalogue: every event type, its payload model, its routing, and the paths a condition may name."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hankwatch.events.envelope import EventData, Routing
from hankwatch.events.payload import Payload, Shape

_RUN_TYPES = (
    "codon.started",
    "codon.completed",
    "codon.extended",
    "state.snapshot",
    "state.transition",
    "server.idle",
    "token.usage",
    "info",
    "error",
    "checkpoint.list",
    "rollback.started",
    "rollback.progress",
    "rollback.codonCheckpoint",
    "rollback.rigCleanup",
    "rollback.archiveRestore",
    "rollback.completed",
    "archive.completed",
    "archive.partial",
    "loop.iteration.completed",
    "budget.summary",
)
_ACTIVITY_TYPES = (
    "assistant.action",
    "tool.result",
    "file.updated",
    "filetree.updated",
    "rig.output",
    "rig.setup.completed",
    "rig.setup.failed",
)
_SENTINEL_TYPES = (
    "sentinel.loaded",
    "sentinel.triggered",
    "sentinel.output",
    "sentinel.error",
    "sentinel.unloaded",
)
_NAMED_TYPES = (
    "watchdog.nudge",
    "watchdog.interrupt",
    "watch.armed",
    "watch.updated",
    "watch.met",
    "watch.value_changed",
    "watch.impossible",
    "watch.expired",
    "watch.cancelled",
    "watch.stalled",
    "watch.broken",
    "watch.recovered",
    "watch.flapping",
    "watch.delivery",
    "journal.repaired",
)


class _Payloads(Mapping[str, type[Payload]]):
    """Models by type; a module of payloads is imported when one of its models is asked for.

    Building all models costs a short command, which looks at a few of them, a tenth of its time.
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes
        self._models: dict[str, type[Payload]] = {}

    def __getitem__(self, type_name: str) -> type[Payload]:
        if type_name not in self._models:
            module = import_module(self._homes[type_name])
            self._models |= {model.TYPE: model for model in module.PAYLOADS}
        return self._models[type_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


PAYLOADS: Mapping[str, type[Payload]] = _Payloads(
    dict.fromkeys(_RUN_TYPES, "hankwatch.events.run")
    | dict.fromkeys(_ACTIVITY_TYPES, "hankwatch.events.activity")
    | dict.fromkeys((*_SENTINEL_TYPES, *_NAMED_TYPES), "hankwatch.events.observers")
)
"""Type name to payload model, for every type this runtime emits."""

KNOWN_TYPES: frozenset[str] = frozenset(PAYLOADS)
OPEN_TYPES: frozenset[str] = frozenset((*_RUN_TYPES, *_ACTIVITY_TYPES))
"""The 27 types that ``"*"`` means."""
CONNECTION_TYPES: frozenset[str] = frozenset({"server.ready", "pong", "history.batch", "incomplete.codon"})
"""Messages of the WebSocket protocol that look like events; none is journaled or routed."""

_NAMED = frozenset(_NAMED_TYPES)
_ANYTHING: Any = Any


def routing(type_name: str, data: EventData) -> Routing:
    """Which triggers an event of this type and payload can reach (spec events, routing table)."""
    if type_name in OPEN_TYPES:
        if type_name == "state.transition" and data.get("transitionType") == "SentinelStatesUpdated":
            return Routing.NEVER
        return Routing.OPEN
    return Routing.NAMED if type_name in _NAMED else Routing.NEVER


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
