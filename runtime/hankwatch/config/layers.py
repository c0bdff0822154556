"""Values from several places, laid over each other: the last one wins, and each knows where it came from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Name = tuple[str, ...]
"""Path of one value: ``("journal", "sync_interval_s")``."""
Combine = Callable[[Any, Any], Any]
"""(value below, value of this layer) -> the value that holds."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of one layer."""

    value: Any
    origin: str
    """Where it was written, for people: ``default``, ``hankwatch.toml:3``, ``HANKWATCH_…``, ``--max-cost``."""


@dataclass(frozen=True, slots=True)
class Layer:
    """All that one place says."""

    values: Mapping[Name, Value]
    combine: Mapping[Name, Combine] = field(default_factory=dict)
    """Values of this layer that do not simply win, as a ceiling that may only be lowered."""


def lay(layers: Sequence[Layer]) -> dict[Name, Value]:
    """Each value as the highest layer that gives it says; ``layers`` run from low to high."""
    laid: dict[Name, Value] = {}
    for layer in layers:
        for name, given in layer.values.items():
            below = laid.get(name)
            combine = layer.combine.get(name)
            if (
                below is not None
                and below.value is not None
                and combine
                and combine(below.value, given.value) != given.value
            ):
                continue
            laid[name] = given
    return laid


def leaves(tree: Mapping[str, Any], prefix: Name = ()) -> Iterator[tuple[Name, Any]]:
    """Every value of nested mappings with its path; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*prefix, key))
        else:
            yield (*prefix, key), value


def tree(values: Mapping[Name, Any]) -> dict[str, Any]:
    """The opposite of ``leaves``."""
    root: dict[str, Any] = {}
    for name, value in values.items():
        node = root
        for key in name[:-1]:
            node = node.setdefault(key, {})
        node[name[-1]] = dict(value) if isinstance(value, Mapping) else value
    return root
