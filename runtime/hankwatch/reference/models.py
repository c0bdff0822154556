"""The pages of the files that people write, from their JSON Schemas."""

import json
import re
from collections.abc import Iterator

from hankwatch.reference.markdown import prose
from hankwatch.reference.shapes import Schema, sections
from hankwatch.schemas import file_name, schema


def hank() -> str:
    """``hank.json``."""
    return _page(
        "hank",
        "hank.json",
        "Paths are relative to the folder of `hank.json`, with `/`, and never lead out of it. Unknown keys are faults.",
    )


def sentinel() -> str:
    """A sentinel's config."""
    return _page(
        "sentinel",
        "A sentinel's config",
        "A codon attaches it by its path, as an object in `hank.json`, or as `stock:ID`. Paths are relative to the "
        "folder of the config. [Write a sentinel](../how-to/write-a-sentinel.md) shows it at work.",
    )


def check() -> str:
    """A check file."""
    return _page(
        "check",
        "A check",
        "`NAME.check.json`, or `check.json` in a folder of its own. "
        "[Check sentinels in CI](../how-to/check-in-ci.md) shows it at work.",
    )


def watch() -> str:
    """Watches to arm."""
    return _page("watch", "Watches", "`hankwatch watch create FILE` arms one, `hankwatch watch apply FILE` a set.")


def settings() -> str:
    """``hankwatch.toml``."""
    return _page(
        "settings",
        "Settings",
        "One file is read: the one named by `--config`, else `hankwatch.toml` beside the hank, else `hankweave.json` "
        "(0.10 names) in the working directory, else `hankwatch/hankwatch.toml` in the user's config folder. From low "
        "to high: defaults, that file, the hank's `overrides`, [the environment](environment.md), flags. A hank's "
        "`overrides` may lower a budget, never raise it. `hankwatch validate` prints each value with where it came "
        "from.\n\n"
        "```toml\n[run]\ntool_result_chars = 5000\n\n[sentinel]\nmax_concurrent_calls = 4\n\n"
        '[agents.claude]\ncommand = ["/opt/claude/bin/claude"]\n```',
    )


def _page(name: str, title: str, about: str) -> str:
    shape = _by_key(schema(name)) if name == "settings" else schema(name)
    return (
        f"# {title}\n\n{prose(shape.get('description'))} {about}\n\n"
        f"The same as a JSON Schema: `schemas/{file_name(name)}`, or `hankwatch validate --print-schema {name}`.\n\n"
        f"{sections(shape)}"
    ).rstrip() + "\n"


def _by_key(shape: Schema) -> Schema:
    """The schema with each definition called by its place in the file: ``run.budget``."""
    places = dict(_places(shape, shape["$defs"]))
    called = re.sub(
        r'"(#/\$defs/)?(\w+)"', lambda name: f'"{name[1] or ""}{places.get(name[2], name[2])}"', json.dumps(shape)
    )
    made: Schema = json.loads(called)
    return made


def _places(shape: Schema, definitions: Schema, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in shape["properties"].items():
        each = inner.get("additionalProperties")
        ref = (each if isinstance(each, dict) else inner).get("$ref")
        if ref is not None:
            name, place = ref.rpartition("/")[2], f"{prefix}{key}{'.NAME' if each else ''}"
            yield name, place
            yield from _places(definitions[name], definitions, f"{place}.")
