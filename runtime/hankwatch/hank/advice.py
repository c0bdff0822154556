"""Hints for keys that people often write in the wrong place or under another name (reference 2.2)."""

from collections.abc import Mapping

from hankwatch.config.places import Path
from hankwatch.hank.model import Codon, Hank, Loop

_ROOT: Mapping[str, str] = {
    "sentinels": "sentinels belong to a codon: move the list into hank[n].sentinels",
    "codons": "the list of codons is called 'hank'",
    "phases": "the list of codons is called 'hank'",
    "name": "belongs into 'meta'",
    "version": "belongs into 'meta'",
    "description": "belongs into 'meta'",
    "author": "belongs into 'meta'",
    "budget": "belongs into 'overrides', or onto a codon",
    "systemPrompt": "use 'globalSystemPromptFile' or 'globalSystemPromptText'",
}
_CODON: Mapping[str, str] = {
    "systemPrompt": "use 'appendSystemPromptFile' or 'appendSystemPromptText'",
    "systemPromptFile": "did you mean 'appendSystemPromptFile'?",
    "systemPromptText": "did you mean 'appendSystemPromptText'?",
    "prompt": "use 'promptFile' or 'promptText'",
    "trackedFiles": "did you mean 'checkpointedFiles'?",
    "rig": "did you mean 'rigSetup'?",
    "archive": "did you mean 'archiveOnSuccess'?",
    "mode": "did you mean 'continuationMode'?",
    "maxCost": "use 'budget': {\"maxDollars\": …}",
    "maxTime": "use 'budget': {\"maxTimeSeconds\": …}",
    "idleTimeout": "did you mean 'shimIdleTimeout'?",
    "retries": "use 'onFailure': \"retry\" with 'retryConfig'",
    "maxAttempts": "belongs into 'retryConfig'",
    "output": "did you mean 'outputFiles'?",
    "requirements": "belongs to the root of the file",
    "overrides": "belongs to the root of the file",
}
_LOOP: Mapping[str, str] = {
    "limit": "belongs into 'terminateOn'",
    "iterations": 'use \'terminateOn\': {"type": "iterationLimit", "limit": …}',
    "hank": "the codons of a loop are called 'codons'",
}
_RIG: Mapping[str, str] = {
    "workingDirectory": "belongs into 'command'",
    "run": "belongs into 'command'",
    "from": "belongs into 'copy'",
    "to": "belongs into 'copy'",
}
_ALIASES_OF_CODON = {field.alias or name for name, field in Codon.model_fields.items()}
_ALIASES_OF_LOOP = {field.alias or name for name, field in Loop.model_fields.items()}
_ALIASES_OF_ROOT = {field.alias or name for name, field in Hank.model_fields.items()}


def advise(place: Path, key: str) -> str | None:
    """A hint for an unknown key of the object at ``place``, or None when a guess by spelling is as good."""
    match place:
        case ():
            moved = "a codon's setting: move it into an item of 'hank'" if key in _ALIASES_OF_CODON else None
            return _ROOT.get(key, moved)
        case ("hank", int()) | ("hank", int(), "codons", int()):
            if key in _ALIASES_OF_LOOP - _ALIASES_OF_CODON:
                return 'a loop\'s setting: a loop has "type": "loop"'
            if key in _ALIASES_OF_ROOT - _ALIASES_OF_CODON:
                return "belongs to the root of the file"
            return _CODON.get(key) or _LOOP.get(key)
        case (*_, "rigSetup", int()):
            return _RIG.get(key)
        case _:
            return None
