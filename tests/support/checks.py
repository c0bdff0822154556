"""Checks as files, and what is told of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from tests.support.sentinels import InProcessSandbox

from hankwatch.bench.check.carry import carry_out, hold_against
from hankwatch.bench.check.result import CheckResult
from hankwatch.bench.check.seen import Seen, SeenError, SeenFire

AT = "2026-01-01T00:00:00.000Z"
SENTINEL = {
    "id": "it",
    "name": "It",
    "model": "builtin/echo",
    "trigger": {"type": "event", "on": ["info"]},
    "execution": {"strategy": "immediate"},
    "userPromptText": "{{ it.events[0].data.message }}",
}


def sentinel(path: Path, **config: Any) -> Path:
    """A sentinel's file: it repeats each ``info`` unless ``config`` says otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**SENTINEL, **config}))
    return path


def write_check(path: Path, expect: Any = None, /, **keys: Any) -> Path:
    """A check's file; None leaves a key out."""
    whole = {"expect": {} if expect is None else expect, **keys}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({key: value for key, value in whole.items() if value is not None}, indent=2))
    return path


def texts(*entries: str) -> Seen:
    """A sentinel with a text report."""
    return Seen(entries=list(entries), chunks=[f"\n---\n{entry}\n".encode() for entry in entries])


def values(*entries: Any) -> Seen:
    """A sentinel with a report of JSON lines."""
    return Seen(entries=list(entries), chunks=[orjson.dumps(entry) + b"\n" for entry in entries], is_text=False)


def fired(*causes: str) -> Seen:
    """A sentinel that fired for these reasons."""
    return Seen(fires=[SeenFire(cause, AT, number, "build") for number, cause in enumerate(causes, 1)])


def failed(*messages: str) -> Seen:
    """A sentinel whose calls failed."""
    return Seen(errors=[SeenError("llm-call-failed", message) for message in messages])


async def held(folder: Path, expect: Mapping[str, Any], **seen: Seen) -> CheckResult:
    """What comes of holding these expectations against that."""
    return await hold_against(write_check(folder / "it.check.json", expect), seen, InProcessSandbox())


async def asserted(folder: Path, seen: Seen, *assertions: Mapping[str, Any]) -> Sequence[str]:
    """What is told of assertions on the report of ``it``: message and details, as lines."""
    result = await held(folder, {"reports": {"it": list(assertions)}}, it=seen)
    assert result.outcome != "faulty", list(result.lines())
    return [line for told in result.told for line in (told.message, *told.details)]


async def played(path: Path, *, rewrite: bool = False) -> CheckResult:
    """The check carried out in this process."""
    return await carry_out(path, InProcessSandbox(), rewrite=rewrite)
