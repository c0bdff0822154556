"""What a model would accept at a place, in words: read from its JSON Schema, only when there is a fault."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel

Schema = dict[str, Any]
NOT_BLANK: Final = r"^[^\x00]*[^\s\x00][^\x00]*$"
"""The pattern of a text that says something, and has no character that PostgreSQL keeps in no text."""
NO_NUL: Final = r"^[^\x00]*$"
"""The pattern of what can be a program's argument."""
_PATTERNS: Final = {NOT_BLANK: "a text that is not blank and has no NUL", NO_NUL: "a string without NUL"}


@lru_cache(maxsize=64)
def schema_of(model: type[BaseModel]) -> Schema:
    """The model's JSON Schema as it reads input, keys by alias."""
    return model.model_json_schema(mode="validation", by_alias=True)


def shapes_at(model: type[BaseModel], path: Sequence[str | int], value: Any) -> list[Schema]:
    """The alternatives that the model has for the value at ``path`` below ``value``, unions opened."""
    root = schema_of(model)
    nodes = list(_alternatives(root, root, value))
    for step in path:
        value = _child(value, step)
        nodes = [found for node in nodes for below in _below(node, step) for found in _alternatives(root, below, value)]
    return nodes


def keys_of(shapes: Sequence[Schema]) -> list[str]:
    """The keys that an object may have here."""
    return list(dict.fromkeys(key for shape in shapes for key in shape.get("properties", {})))


def in_words(shapes: Sequence[Schema]) -> str:
    """``an integer from 1 to 1,000 or null``; empty when anything goes."""
    phrases = list(dict.fromkeys(filter(None, map(_phrase, shapes))))
    return any_of(phrases)


def any_of(phrases: Sequence[str]) -> str:
    """``a, b or c``."""
    *most, last = phrases or [""]
    return f"{', '.join(most)} or {last}" if most else last


def close_to(word: object, known: Sequence[str]) -> str | None:
    """The known word that was probably meant."""
    if not isinstance(word, str):
        return None
    lowered = {name.lower().replace("_", "").replace("-", ""): name for name in known}
    found = get_close_matches(word.lower().replace("_", "").replace("-", ""), lowered, n=1, cutoff=0.7)
    return lowered[found[0]] if found else None


def _alternatives(root: Schema, node: Schema, value: Any) -> Iterator[Schema]:
    """The node's alternatives; of tagged objects only those whose tag agrees with the value's."""
    found = list(_opened(root, node))
    tagged = [shape for shape in found if not _tag_disagrees(shape, value)]
    yield from tagged or found


def _opened(root: Schema, node: Schema) -> Iterator[Schema]:
    if "$ref" in node:
        yield from _opened(root, root["$defs"][node["$ref"].rpartition("/")[2]])
        return
    branches = [branch for word in ("anyOf", "oneOf", "allOf") for branch in node.get(word, ())]
    for branch in branches:
        yield from _opened(root, branch)
    if not branches:
        yield node


def _tag_disagrees(shape: Schema, value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return any(
        key in value and value[key] not in inner.get("enum", [inner.get("const", value[key])])
        for key, inner in shape.get("properties", {}).items()
    )


def _child(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _below(node: Schema, step: str | int) -> Iterator[Schema]:
    if isinstance(step, int):
        inner = node.get("items")
    else:
        inner = node.get("properties", {}).get(step, node.get("additionalProperties"))
    if isinstance(inner, dict):
        yield inner


def _phrase(shape: Schema) -> str:
    if "const" in shape or "enum" in shape:
        return any_of([repr(word) for word in shape.get("enum", [shape.get("const")])])
    kind = shape.get("type")
    if kind in {"integer", "number"}:
        return ("an integer" if kind == "integer" else "a number") + _range(shape, whole=kind == "integer")
    if kind == "string":
        words = "a non-empty string" if shape.get("minLength") else "a string"
        if (known := _PATTERNS.get(shape.get("pattern", ""))) is not None:
            return known
        return f"{words} that matches {shape['pattern']}" if "pattern" in shape else words
    if kind == "array":
        return _list_phrase(shape)
    return {"boolean": "true or false", "object": "an object", "null": "null"}.get(str(kind), "")


def _list_phrase(shape: Schema) -> str:
    items = shape.get("items", {})
    item = _phrase(items) if "$ref" not in items else "an object"
    words = "a non-empty list" if shape.get("minItems") else "a list"
    plural = {"a string": "strings", "a non-empty string": "non-empty strings", "an object": "objects"}.get(item)
    return f"{words} of {plural}" if plural else words


def _range(shape: Schema, *, whole: bool) -> str:
    low, high = shape.get("minimum"), shape.get("maximum")
    above = shape.get("exclusiveMinimum")
    if above is not None and whole:
        low, above = above + 1, None
    upper = f"{high:,}" if high is not None else None
    if above is not None:
        return f" above {above:,}" + (f", at most {upper}" if upper else "")
    if low is not None and upper:
        return f" from {low:,} to {upper}"
    if low is not None:
        return f", {low:,} or more"
    return f" of at most {upper}" if upper else ""
