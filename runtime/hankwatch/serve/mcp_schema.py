"""JSON Schemas of tools' arguments: one flat object, which every model provider takes and a model reads in a moment.

They are made from the models that requests are read by. A union of objects becomes one object with the keys of all of
them, of which those that all have to have are required; what a key really takes is for the reader of the request to
say, who names every fault.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hankwatch.config.shapes import NO_NUL, NOT_BLANK

Schema = dict[str, Any]
_NOISE: Final = frozenset({"title", "discriminator", "default"})
_MAX_DEPTH: Final = 4
"""Objects inside objects; what lies deeper is only called an object."""


def flat_schema(schema: Mapping[str, Any], *, without: Iterable[str] = ()) -> Schema:
    """A model's schema, flat, and lacking some of its keys."""
    flat = _flat(schema, schema.get("$defs", {}), _MAX_DEPTH)
    for name in without:
        flat["properties"].pop(name, None)
    flat["required"] = [name for name in flat.get("required", []) if name in flat["properties"]]
    flat.pop("description", None)
    return {**flat, "additionalProperties": False}


def _flat(schema: Mapping[str, Any], defs: Mapping[str, Any], room: int) -> Schema:
    if (name := schema.get("$ref")) is not None:
        shown = _flat(defs[name.rpartition("/")[2]], defs, room)
        return {**shown, **{key: value for key, value in schema.items() if key == "description"}}
    flat = {key: value for key, value in schema.items() if key not in _NOISE and key != "$defs"}
    if flat.get("pattern") in {NOT_BLANK, NO_NUL}:  # no model writes what they keep out
        del flat["pattern"]
    for union in ("oneOf", "anyOf"):
        if union in flat:
            kinds = [_flat(kind, defs, room) for kind in flat.pop(union)]
            said = flat.get("description")
            flat = {**flat, **_one(kinds), **({"description": said} if said else {})}
    if "const" in flat:
        flat["enum"] = [flat.pop("const")]
    if "properties" in flat:
        if not room:
            return {"type": "object", **({"description": flat["description"]} if "description" in flat else {})}
        flat["properties"] = {key: _flat(value, defs, room - 1) for key, value in flat["properties"].items()}
    if "items" in flat:
        flat["items"] = _flat(flat["items"], defs, room)
    return flat


def _one(kinds: list[Schema]) -> Schema:
    """One schema that takes whatever one of several does."""
    kinds = [kind for kind in kinds if kind.get("type") != "null"]
    if len(kinds) == 1:
        return kinds[0]
    if kinds and all("properties" in kind for kind in kinds):
        return _merged(kinds)
    if kinds and all("enum" in kind for kind in kinds):
        return {"type": "string", "enum": _all("enum", kinds)}
    items = next((kind["items"] for kind in kinds if "items" in kind), None)
    shown = _types(kinds)
    return shown if items is None else {**shown, "items": items}


def _types(kinds: list[Schema]) -> Schema:
    """What may stand there; nothing is said where one of them takes anything."""
    if any("type" not in kind for kind in kinds):
        return {}
    written = [kind["type"] if isinstance(kind["type"], list) else [kind["type"]] for kind in kinds]
    types = list(dict.fromkeys(name for names in written for name in names))
    if "number" in types and "integer" in types:
        types.remove("integer")
    return {"type": types[0] if len(types) == 1 else types}


def _merged(kinds: list[Schema]) -> Schema:
    properties: dict[str, Schema] = {}
    for kind in kinds:
        for name, schema in kind["properties"].items():
            known = properties.get(name)
            if known is None or known == schema:
                properties[name] = schema
            elif "enum" in known and "enum" in schema:
                properties[name] = {"type": "string", "enum": _all("enum", [known, schema])}
            else:
                properties[name] = _one([known, schema])
    required = [
        name for name in kinds[0].get("required", []) if all(name in kind.get("required", []) for kind in kinds)
    ]
    return {"type": "object", "properties": properties, "required": required}


def _all(key: str, kinds: list[Schema]) -> list[Any]:
    return list(dict.fromkeys(value for kind in kinds for value in kind[key]))
