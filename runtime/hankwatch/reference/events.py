"""The page of the events, from the catalogue and the payload models."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from hankwatch.config.docstrings import field_docstrings
from hankwatch.events.catalogue import PAYLOADS, routing
from hankwatch.events.envelope import Routing
from hankwatch.reference.markdown import anchor, code, prose, table
from hankwatch.reference.shapes import Schema, written

_REACH: Mapping[Routing, tuple[str, str]] = {
    Routing.OPEN: ("Open events", "Triggers get them by name and by `*`."),
    Routing.NAMED: ("Named events", "Triggers get them by name only; `*` leaves them out."),
    Routing.NEVER: ("Events of sentinels", "No trigger gets them: what sentinels do never causes sentinels to act."),
}


class _WithStrings(GenerateJsonSchema):
    """Adds the strings under the fields; the models leave them out, because a program that starts needs none."""

    def model_schema(self, schema: Any) -> Schema:
        made: Schema = super().model_schema(schema)
        model = schema["cls"]
        said, fields = field_docstrings(model), model.model_fields
        keys_by_name = {name: field.serialization_alias or field.alias or name for name, field in fields.items()}
        made["description"] = _in_keys(made.get("description", ""), keys_by_name)
        for name, key in keys_by_name.items():
            shape = made.get("properties", {}).get(key)
            if shape is not None and name in said:
                shape["description"] = _in_keys(said[name], keys_by_name)
        return made


def _in_keys(text: str, keys_by_name: Mapping[str, str]) -> str:
    """A docstring with the fields it names spelled as in the JSON."""
    return re.sub(r"``(\w+)``", lambda name: f"``{keys_by_name.get(name[1], name[1])}``", text)


def page() -> str:
    """Every type, who gets it, and the fields of its payload."""
    made = (
        "# Events\n\nEverything that happens in a run is one line of its journal, with these keys in this order:\n\n"
        '```json\n{ "id": "…", "timestamp": "2026-11-30T15:18:45.241Z", "type": "tool.result", "data": {} }\n```\n\n'
        "`id` is a UUIDv7, `timestamp` is UTC with milliseconds. `data` is the payload: its fields stand below, and a "
        "trigger's conditions name them by dotted paths (`toolInput.command`, `tree.0.path`, `content.length`). "
        "`cost` is in US dollars, and `null` where the price is unknown. In a loop `codonId` is `<id>#<n>` and "
        "`baseCodonId` is the id in the hank.\n\n"
        "One exception: a `state.transition` whose `transitionType` is `SentinelStatesUpdated` reaches no trigger.\n\n"
    )
    shapes = _schemas()
    described = {name: prose(shapes[model.__name__]["description"]) for name, model in PAYLOADS.items()}
    made += table(
        ("type", "reaches triggers", "says"),
        [(f"[{code(name)}](#{anchor(name)})", routing(name, {}).value, described[name]) for name in PAYLOADS],
    )
    for reach, (title, about) in _REACH.items():
        made += f"## {title}\n\n{about}\n\n"
        for name, model in PAYLOADS.items():
            if routing(name, {}) is reach:
                made += f"### {name}\n\n{described[name]}\n\n{written(shapes[model.__name__])}"
    payloads = {model.__name__ for model in PAYLOADS.values()}
    made += "## Parts of payloads\n\n"
    for name, shape in shapes.items():
        if name not in payloads:
            made += f"### {name}\n\n{prose(shape.get('description'))}\n\n{written(shape)}"
    return made.rstrip() + "\n"


def _schemas() -> dict[str, Schema]:
    models: Iterable[Any] = [(model, "serialization") for model in PAYLOADS.values()]
    _, made = models_json_schema(list(models), by_alias=True, schema_generator=_WithStrings)
    definitions: dict[str, Schema] = made["$defs"]
    return definitions
