"""The JSON Schemas that editors use, generated from the models: ``python -m hankwatch.schemas [--check]``."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hankwatch.bench.check.model import Check
from hankwatch.bench.check.rules import TESTS
from hankwatch.config.legacy import LegacySettings
from hankwatch.config.resources import PACKAGE, resource
from hankwatch.events.catalogue import CONNECTION_TYPES, KNOWN_TYPES
from hankwatch.hank.model import Hank
from hankwatch.hank.watchdog_file import WatchdogFile
from hankwatch.matching.triggers import ANY
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.settings import Settings
from hankwatch.watches.files import WatchFiles

MODELS: Mapping[str, type[BaseModel]] = {
    "hank": Hank,
    "sentinel": SentinelConfig,
    "watchdog": WatchdogFile,
    "check": Check,
    "watch": WatchFiles,
    "settings": Settings,
    "hankweave": LegacySettings,
}
"""Name of the schema -> the model it is made from; ``validate --print-schema NAME`` takes these names."""
_FOLDER = PACKAGE.parent.parent / "schemas"


def schema(name: str) -> dict[str, Any]:
    """One JSON Schema as data; raises KeyError for an unknown name."""
    made = MODELS[name].model_json_schema(mode="validation", by_alias=True)
    if name == "hank":
        _describe_inline_sentinels(made)
    definitions = made.get("$defs", {})
    for shape in (made, *definitions.values()):
        _add_rules(shape)
    if "EventTrigger" in definitions:
        definitions["EventType"] = _EVENT_TYPE
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def file_name(name: str) -> str:
    """``hank`` -> ``hank.schema.json``."""
    return f"{name}.schema.json"


def stale(folder: Path = _FOLDER) -> list[str]:
    """The files of ``folder`` that are missing, left over, or differ from what the models say."""
    made = {file_name(name): _text(name) for name in MODELS}
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))


def write(folder: Path = _FOLDER) -> list[Path]:
    """Write every schema; the paths written."""
    paths = []
    for name in MODELS:
        paths.append(folder / file_name(name))
        paths[-1].write_text(_text(name), encoding="utf-8")
    return paths


def _describe_inline_sentinels(hank: dict[str, Any]) -> None:
    """An inline config is any object to the hank's model, since its faults are its own; an editor can know more."""
    sentinel = MODELS["sentinel"].model_json_schema(mode="validation", by_alias=True)
    definitions = hank["$defs"]
    definitions.update(sentinel.pop("$defs"))
    definitions["SentinelConfig"] = sentinel
    entry = definitions["SentinelEntry"]["properties"]["sentinelConfig"]
    entry["anyOf"] = [b if b["type"] == "string" else {"$ref": "#/$defs/SentinelConfig"} for b in entry["anyOf"]]
    stock = sorted(path.parent.name for path in resource("sentinels").glob("*/sentinel.json"))
    entry["examples"] = [f"stock:{stock_id}" for stock_id in stock]


def _add_rules(shape: dict[str, Any]) -> None:
    """What editors can know of the rules that models leave to code: paths, event types, keys that need each other."""
    title, fields = shape.get("title", ""), shape.get("properties", {})
    if title in _RULES:
        shape["allOf"] = _RULES[title]
    for key in _PATHS.get(title, ()):
        _set_pattern(fields[key])
    if title in {"EventTrigger", "InterestFilter"}:
        fields["on"]["items"] = {"$ref": "#/$defs/EventType"}
    elif title == "SequenceStep":
        fields["type"] = {"$ref": "#/$defs/EventType", "description": fields["type"]["description"]}


def _set_pattern(shape: dict[str, Any]) -> None:
    if shape.get("type") == "string":
        shape["pattern"] = _PATH
    for inner in (*shape.get("anyOf", ()), *([shape["items"]] if "items" in shape else ())):
        _set_pattern(inner)


def _either(*keys: str) -> dict[str, Any]:
    return {"anyOf": [{"required": [key]} for key in keys]}


def _not_both(*keys: str) -> dict[str, Any]:
    return {"not": {"required": list(keys)}}


_EVENT_TYPE: dict[str, Any] = {
    "title": "EventType",
    "description": "The type of an event, or `*` for every type that reaches sentinels by default.",
    "enum": [ANY, *sorted(KNOWN_TYPES | CONNECTION_TYPES)],
}
_PATH = r"^(?!\s*$)(?![/~])(?![A-Za-z]:)[^\\\u0000-\u001f\u007f]+$"
_PATHS: Mapping[str, tuple[str, ...]] = {
    "SentinelConfig": ("systemPromptFile", "userPromptFile"),
    "StructuredOutput": ("schemaFile",),
    "Codon": ("promptFile", "appendSystemPromptFile"),
    "Copy": ("from",),
    "Hank": ("globalSystemPromptFile",),
    "Check": ("recording", "sentinel", "hank", "calls"),
    "Expectations": ("journal",),
    "Assertion": ("equalsFile",),
}
"""Definition -> its fields that hold paths (``config.refs.check_ref``)."""
_REPORT_OF_VALUES = {
    "properties": {
        "joinString": False,
        "output": {
            "properties": {
                "format": False,
                "file": {"pattern": r"\.(?:jsonl|ndjson)$"},
                "lastValueFile": {"pattern": r"\.json$"},
            }
        },
    }
}
_RULES: Mapping[str, list[dict[str, Any]]] = {
    "SentinelConfig": [
        _either("userPromptText", "userPromptFile"),
        {"if": {"required": ["conversational"]}, "then": _either("systemPromptText", "systemPromptFile")},
        {"if": {"required": ["structuredOutput"]}, "then": _REPORT_OF_VALUES},
    ],
    "StructuredOutput": [
        {
            "if": {"properties": {"output": {"const": "enum"}}},
            "then": {"required": ["enumValues"], "properties": {"schemaStr": False, "schemaFile": False}},
            "else": {
                "properties": {"enumValues": False},
                "oneOf": [{"required": ["schemaStr"]}, {"required": ["schemaFile"]}],
            },
        }
    ],
    "Codon": [
        _either("promptFile", "promptText"),
        _not_both("appendSystemPromptFile", "appendSystemPromptText"),
        {
            "if": {"required": ["retryConfig"]},
            "then": {"required": ["onFailure"], "properties": {"onFailure": {"const": "retry"}}},
        },
    ],
    "Hank": [_not_both("globalSystemPromptFile", "globalSystemPromptText")],
    "Check": [_not_both("sentinel", "hank")],
    "Span": [_either("min", "max")],
    "Assertion": [
        _either(*TESTS, "schema", "equalsFile"),
        {"if": {"required": ["exists"]}, "then": {"required": ["pointer"]}},
        {"if": {"required": ["equalsFile"]}, "then": {"properties": {"entry": False, "pointer": False}}},
    ],
}
"""Definition -> the rules between its fields that JSON Schema can say (``sentinels.rules``, ``hank.rules``)."""


def _text(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def keep_fresh(
    arguments: list[str], stale: Callable[[], Sequence[object]], write: Callable[[], Iterable[object]], remedy: str
) -> int:
    """Write generated files, or with ``--check`` say which are not fresh, and what would make them so; the exit code."""
    if arguments == ["--check"]:
        old = stale()
        if old:
            print(f"not fresh: {', '.join(map(str, old))}; run `{remedy}`", file=sys.stderr)  # noqa: T201
        return 1 if old else 0
    for path in write():
        print(path)  # noqa: T201 - a tool for developers
    return 0


def main(arguments: list[str]) -> int:
    """``keep_fresh`` for the schemas."""
    return keep_fresh(arguments, stale, write, "python -m hankwatch.schemas")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
