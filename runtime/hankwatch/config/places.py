"""Where in a value something is: pydantic's error locations read as steps through the data."""

from collections.abc import Iterator
from typing import Any

from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""Keys and indexes from the whole value to one inside it."""


def place_of(error: ErrorDetails, value: Any) -> Path:
    """Where in the value the error is: pydantic's location without the names of union branches."""
    kind, loc = error["type"], error["loc"]
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        tag = str(error["ctx"]["discriminator"]).strip("'")
        return (*_first_fit(loc, value, error["input"]), *([] if tag.endswith("()") else [tag]))
    if kind == "missing":
        return (*_first_fit(loc[:-1], value, error["input"]), loc[-1])
    return _first_fit(loc, value, error["input"])


def _first_fit(loc: Path, value: Any, wanted: Any) -> Path:
    fits = list(_fits(loc, value))
    for place, found in fits:
        if found == wanted and type(found) is type(wanted):
            return place
    return fits[0][0]


def _fits(loc: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Every way to read a location: each step is a key or index of the value, or the name of a branch."""
    if not loc:
        yield (), value
        return
    step, rest = loc[0], loc[1:]
    container: Any = value
    if (isinstance(value, dict) and step in value) or (
        isinstance(value, list) and isinstance(step, int) and step < len(value)
    ):
        for place, found in _fits(rest, container[step]):
            yield (step, *place), found
    if isinstance(step, str):
        yield from _fits(rest, value)


def value_at(value: Any, place: Path) -> Any:
    """What stands at a place; None for what is missing."""
    for step in place:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def nulls_in(value: Any, place: Path = ()) -> Iterator[Path]:
    """The place of every ``null``."""
    if value is None:
        yield place
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls_in(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nulls_in(inner, (*place, index))
