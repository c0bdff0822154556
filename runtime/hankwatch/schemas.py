"""The JSON Schemas that editors use, generated from the models: ``python -m hankwatch.schemas [--check]``."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hankwatch.config.legacy import LegacySettings
from hankwatch.config.resources import PACKAGE
from hankwatch.hank.model import Hank
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.settings import Settings

MODELS: Mapping[str, type[BaseModel]] = {
    "hank": Hank,
    "sentinel": SentinelConfig,
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
    branches = definitions["SentinelEntry"]["properties"]["sentinelConfig"]["anyOf"]
    branches[:] = [b if b["type"] == "string" else {"$ref": "#/$defs/SentinelConfig"} for b in branches]


def _text(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the schemas, or with ``--check`` say which are not fresh; the exit code."""
    if arguments == ["--check"]:
        old = stale()
        if old:
            print(f"not fresh: {', '.join(old)}; run `python -m hankwatch.schemas`", file=sys.stderr)  # noqa: T201
        return 1 if old else 0
    for path in write():
        print(path)  # noqa: T201 - a tool for developers
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
