"""What a structured answer has to be: schema texts resolved and checked at load (spec sentinels 7)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from hankwatch.config.refs import read_ref
from hankwatch.core.errors import SchemaFault
from hankwatch.sentinels.config import SentinelConfig, StructuredOutput

if TYPE_CHECKING:
    # Only a run needs it, and it costs `validate` time.
    from hankwatch.sandbox.sandbox import Sandbox

JsonSchema = dict[str, Any]

_WRAPPERS = {"array": "items", "enum": "value"}
"""Providers take only schemas of objects, so a list or a word is asked for as the one field of an object."""
_DATA_KEYWORDS = frozenset({"const", "default", "enum", "examples"})
"""What stands below these is data, even where it looks like a schema."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """What the answers of one sentinel are held to."""

    output: Literal["object", "array", "enum"]
    value: JsonSchema
    """Of what goes into the report: an object, a list, or a string."""
    name: str | None
    """What the model is told that the answer is called."""
    description: str | None
    """What the model is told that the answer is for."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The possible answers of an ``enum``; empty for the others."""
        return tuple(self.value["enum"]) if self.output == "enum" else ()

    @property
    def for_provider(self) -> JsonSchema:
        """``value`` as a provider's JSON-schema mode takes it: always of an object."""
        wrapper = _WRAPPERS.get(self.output)
        if wrapper is None:
            return self.value
        return {
            "type": "object",
            "properties": {wrapper: _moved(self.value, f"#/properties/{wrapper}")},
            "required": [wrapper],
            "additionalProperties": False,
        }

    def unwrap(self, value: Any) -> Any:
        """The answer itself where it came as the one field of an object, as ``for_provider`` asks for it."""
        wrapper = _WRAPPERS.get(self.output)
        return value[wrapper] if isinstance(value, dict) and value.keys() == {wrapper} else value

    def instructions(self) -> str:
        """What a model is told whose provider does not enforce schemas."""
        if self.output == "enum":
            words = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in self.choices)
            return f"Answer with exactly one of these JSON strings and nothing else: {words}{self._about}"
        kind = {"object": "JSON object", "array": "JSON array"}[self.output]
        return (
            f"Answer with a single {kind} and nothing else: no text around it, no code fence. It has to be valid "
            f"against this JSON Schema:\n{orjson.dumps(self.value).decode()}{self._about}"
        )

    @property
    def _about(self) -> str:
        about = [f"The answer is called {self.name!r}."] if self.name else []
        about += [f"What it is: {self.description}"] if self.description else []
        return "\n" + " ".join(about) if about else ""


def schema_source(config: StructuredOutput, *, base_dir: Path, root: Path) -> str | None:
    """The schema as written; None for an ``enum``. Raises ``PathRefused`` for a file that cannot be read."""
    if config.schema_file is not None:
        return read_ref(config.schema_file, base=base_dir, root=root)
    return config.schema_str


def read_json_schema(text: str) -> JsonSchema | None:
    """A schema written as JSON; None for any other text, which is then Zod.

    Raises:
        SchemaFault: it begins like a JSON object and is none.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        raise SchemaFault(f"not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise SchemaFault("nested too deep") from None
    assert isinstance(schema, dict)  # JSON that begins with a brace
    return schema


async def answer_schema(
    config: SentinelConfig, *, base_dir: Path, root: Path, sandbox: "Sandbox"
) -> AnswerSchema | None:
    """The schema of a sentinel's answers, checked; None for one that answers in text.

    Raises:
        SchemaFault: the text is neither a JSON Schema nor Zod that can become one.
        PathRefused: its file cannot be read.
    """
    wanted = config.structured_output
    if wanted is None:
        return None
    if wanted.output == "enum":
        value: JsonSchema = {"type": "string", "enum": list(wanted.enum_values or ())}
    else:
        text = schema_source(wanted, base_dir=base_dir, root=root) or ""
        schema = read_json_schema(text)
        value = _value_schema(wanted.output, await sandbox.zod_schema(text) if schema is None else schema)
        await sandbox.check_schema(value)
    return AnswerSchema(wanted.output, value, wanted.schema_name, wanted.schema_description)


def _value_schema(output: Literal["object", "array"], schema: JsonSchema) -> JsonSchema:
    if output == "object":
        if schema.get("type", "object") != "object":
            raise SchemaFault(f"'object' needs the schema of an object, and this one is of {schema['type']!r}")
        return schema
    dialect = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    element = {key: item for key, item in schema.items() if key not in {"$schema", "$id"}}
    return {**dialect, "type": "array", "items": _moved(element, "#/items")}


def _moved(schema: Any, to: str) -> Any:
    """A schema that stands at the pointer ``to`` of another one: its own references go on meaning itself."""
    if isinstance(schema, list):
        return [_moved(item, to) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = {}
    for key, item in schema.items():
        if key in {"$ref", "$dynamicRef"} and isinstance(item, str) and (item == "#" or item.startswith("#/")):
            moved[key] = to + item[1:]
        else:
            moved[key] = item if key in _DATA_KEYWORDS else _moved(item, to)
    return moved
