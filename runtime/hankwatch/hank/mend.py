"""A faulty hank made whole, so that the rules between fields can still look at the rest of it."""

import copy
from itertools import count
from typing import Any

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import validate
from hankwatch.hank.model import Hank

_MAX_PASSES = 20
_PROMPT_KEYS = {"promptFile", "promptText"}


def mended(document: Document) -> Hank | None:
    """The hank with each faulty setting left out, and what is required put in for what is missing.

    Good for finding further faults, never for running. None when the document is no object at all.
    """
    if not isinstance(document.value, dict):
        return None
    value = copy.deepcopy(document.value)
    numbers = count()
    for _ in range(_MAX_PASSES):
        faults = Diagnostics()
        hank = validate(Hank, Document.from_value(value), faults)
        if hank is not None:
            return hank
        for fault in faults.errors:
            tokens = [token.replace("~1", "/").replace("~0", "~") for token in fault.pointer.split("/")[1:]]
            if fault.code == "missing-key" or not _drop(value, tokens):
                _replace(value, tokens, numbers)
    return None


def _drop(value: Any, tokens: list[str]) -> bool:
    """Take out exactly what is at fault; False for a list's item, whose absence would move the others."""
    *way, last = tokens or [""]
    for token in way:
        value = value.get(token) if isinstance(value, dict) else value[int(token)] if isinstance(value, list) else None
    if not isinstance(value, dict):
        return False
    value.pop(last, None)
    _keep_a_prompt(value, last)
    return True


def _replace(root: dict[str, Any], tokens: list[str], numbers: "count[int]") -> None:
    """Mend the whole setting that the tokens lead into: of the root, of an item, or of a loop's codon."""
    name = f"?{next(numbers)}"
    holder = root
    required: dict[str, Any] = {"hank": [_codon(name)]}
    while len(tokens) > 1 and tokens[0] in {"hank", "codons"} and isinstance(holder.get(tokens[0]), list):
        items, index, tokens = holder[tokens[0]], int(tokens[1]), tokens[2:]
        if not tokens or not isinstance(items[index], dict):
            items[index] = _codon(name)
            return
        holder, required = items[index], _codon(name)
        if holder.get("type") == "loop":
            end = {"type": "iterationLimit", "limit": 1}
            required = {"id": name, "name": name, "terminateOn": end, "codons": [_codon(name + "?")]}
    if not tokens:
        return
    key = tokens[0]
    holder.pop(key, None)
    if key in required:
        holder[key] = required[key]
    _keep_a_prompt(holder, key)


def _keep_a_prompt(codon: dict[str, Any], dropped: str) -> None:
    """A codon that lost its only prompt to a fault had one."""
    if dropped in _PROMPT_KEYS and not _PROMPT_KEYS & codon.keys():
        codon["promptText"] = "?"


def _codon(name: str) -> dict[str, Any]:
    return {"id": name, "name": name, "model": "?", "continuationMode": "fresh", "promptText": "?"}
