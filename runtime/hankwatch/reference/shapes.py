"""A JSON Schema as sections of a page: one table of keys for each object."""

from collections.abc import Iterator
from typing import Any

from hankwatch.reference.markdown import anchor, code, prose, table, with_bounds

Schema = dict[str, Any]
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "`true` or `false`",
    "null": "`null`",
}
_PLACES = {"EventType": "an [event type](events.md)", "SentinelConfig": "a [sentinel](sentinel.md)"}
"""Definitions that have a page of their own."""


def sections(schema: Schema) -> str:
    """The object itself, then each definition that it leads to, in the order of their first mention."""
    definitions = schema.get("$defs", {})
    made = keys(schema)
    for name in _reached(schema, definitions):
        shape = definitions[name]
        made += f"## {name}\n\n{prose(shape.get('description'))}\n\n{keys(shape)}"
    return made


def keys(shape: Schema) -> str:
    """The keys of one object; of a choice between words, the words."""
    needed = shape.get("required", ())
    rows = [
        (code(key), in_words(inner), "**required**" if key in needed else _default(inner), prose(_said(inner)))
        for key, inner in shape.get("properties", {}).items()
    ]
    return table(("key", "value", "default", "meaning"), rows) if rows else f"{in_words(shape)}\n\n"


def written(shape: Schema) -> str:
    """The keys of an object that is only read; of a choice between words, the words."""
    always = shape.get("required", ())
    rows = [
        (
            code(key),
            in_words(inner if key in always else _without_null(inner)),
            "always" if key in always else "",
            prose(_said(inner)),
        )
        for key, inner in shape.get("properties", {}).items()
    ]
    return table(("key", "value", "there", "meaning"), rows) if rows else f"{in_words(shape)}\n\n"


def in_words(shape: Schema) -> str:
    """What may stand there: ``text, not empty``, ``a list of …``, a link to a definition."""
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        return _PLACES.get(name, f"[{name}](#{anchor(name)})")
    if "const" in shape:
        return code(shape["const"])
    if "enum" in shape:
        return ", ".join(map(code, shape["enum"]))
    if choices := shape.get("anyOf") or shape.get("oneOf"):
        words = list(dict.fromkeys(map(in_words, choices)))
        if _WORDS["number"] in words and _WORDS["integer"] in words:
            words.remove(_WORDS["integer"])
        return " or ".join(words)
    return _of_type(shape)


def _of_type(shape: Schema) -> str:
    match shape.get("type"):
        case "array":
            item = shape.get("items", {})
            inner = in_words(item)
            if "enum" not in item and item.get("type") in _WORDS and ", " in inner:
                inner = inner.replace(", ", " (", 1) + ")"
            return with_bounds(f"a list of {inner}", shape)
        case "object" if isinstance(shape.get("additionalProperties"), dict):
            return f"an object, name → {in_words(shape['additionalProperties'])}"
        case "object":
            return "an object"
        case str() as kind:
            return with_bounds(_WORDS[kind], shape)
    return "anything"


def _said(shape: Schema) -> str:
    return str(shape.get("description", ""))


def _without_null(shape: Schema) -> Schema:
    """A key that is left out is never ``null``."""
    return {**shape, "anyOf": [one for one in shape.get("anyOf", ()) if one.get("type") != "null"]}


def _default(shape: Schema) -> str:
    default = shape.get("default")
    return "" if default is None or default in ([], {}) or isinstance(default, dict) else code(default)


def _reached(shape: Any, definitions: Schema, seen: set[str] | None = None) -> Iterator[str]:
    seen = set() if seen is None else seen
    for name in _mentioned(shape):
        if name in definitions and name not in seen and name not in _PLACES:
            seen.add(name)
            yield name
            yield from _reached(definitions[name], definitions, seen)


def _mentioned(shape: Any) -> Iterator[str]:
    """The definitions that a schema names itself, not those of its ``$defs``."""
    if isinstance(shape, dict):
        if "$ref" in shape:
            yield shape["$ref"].rpartition("/")[2]
        for key, inner in shape.items():
            if key not in {"$defs", "discriminator"}:
                yield from _mentioned(inner)
    elif isinstance(shape, list):
        for inner in shape:
            yield from _mentioned(inner)
