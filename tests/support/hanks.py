"""Hanks for tests, as data and as folders."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hankwatch.hank.load import LoadedHank, load_hank


def codon(codon_id: str = "one", /, **fields: Any) -> dict[str, Any]:
    """A codon without a fault; ``fields`` are JSON keys that replace or add to its own, None takes one out."""
    made = {
        "id": codon_id,
        "name": f"Codon {codon_id}",
        "model": "anthropic/claude-haiku-4-5",
        "continuationMode": "fresh",
        "promptText": "Do it.",
        **fields,
    }
    return {key: value for key, value in made.items() if value is not None}


def loop(*codons: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A loop without a fault; its codons go on after a failure unless they say otherwise."""
    return {
        "type": "loop",
        "id": "again",
        "name": "Loop",
        "terminateOn": {"type": "iterationLimit", "limit": 2},
        "codons": [{"onFailure": "ignore", **inner} for inner in codons],
        **fields,
    }


def hank(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A hank of these items."""
    return {"hank": list(items), **fields}


def load(
    folder: Path,
    content: dict[str, Any] | str,
    files: dict[str, str | bytes] | None = None,
    *,
    env: Mapping[str, str] | None = None,
) -> LoadedHank:
    """The hank written to ``folder`` with these files beside it, loaded."""
    folder.mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    (folder / "hank.json").write_text(text, encoding="utf-8")
    return load_hank(folder, env=env)


def stub_files(hank_text: str, folder: Path) -> None:
    """Put a file where each path of a hank points that begins with ``./`` or names a known kind of file."""
    for named in re.findall(r'"((?:\./|prompts/|sentinels/|tpl)[^"]*)"', hank_text):
        path = folder / named
        path.parent.mkdir(parents=True, exist_ok=True)
        if named.endswith(".json"):
            path.write_text(json.dumps(sentinel(path.name.partition(".")[0])), encoding="utf-8")
        else:
            path.write_text("Do it.", encoding="utf-8")


def sentinel(sentinel_id: str = "observer", /, **fields: Any) -> dict[str, Any]:
    """A sentinel config without a fault or a lint."""
    return {
        "id": sentinel_id,
        "name": f"Sentinel {sentinel_id}",
        "trigger": {"type": "event", "on": ["codon.completed"]},
        "execution": {"strategy": "immediate"},
        "model": "anthropic/claude-haiku-4-5",
        "userPromptText": "{{ it.events }}",
        **fields,
    }


def findings(loaded: LoadedHank, *codes: str) -> list[tuple[str, str, str]]:
    """(severity, code, pointer) of the diagnostics; without ``codes`` of all."""
    return [(d.severity, d.code, d.pointer) for d in loaded.diagnostics if not codes or d.code in codes]
