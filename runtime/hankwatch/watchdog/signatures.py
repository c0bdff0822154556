"""A tool call and its answer as short signatures: what it takes for two calls to be the same (spec watchdog 5.4)."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from hankwatch.core.fingerprint import fingerprint
from hankwatch.core.text import shorten
from hankwatch.events.activity import ToolOutcome
from hankwatch.watchdog.policy import ToolClass
from hankwatch.watchdog.signals import Call, Result

_COMMENTARY = frozenset(
    [
        "description",
        "explanation",
        "intent",
        "reasoning",
        "thought",
        "justification",
        "timestamp",
        "nonce",
        "requestid",
        "traceid",
        "idempotencyid",
        "idempotencykey",
    ]
)
"""Arguments about the call, without ``_`` and ``-``; two calls that differ in them alone are the same."""
_MAX_DEPTH = 64
"""Arguments nested deeper are not told apart."""
_MAX_NAME_CHARS = 80
_COMMANDS = ("command", "commands", "cmd", "script")
_SLEEPS = re.compile(
    r"""(?:^|[;&|({"'`]|\b(?:do|then|else|sudo)\b)\s*(?:/bin/)?sleep\s+["']?[\d.$]|\bStart-Sleep\b""", re.MULTILINE
)
_IMAGE = re.compile(r"\s*(?:data:[\w.+-]+/[\w.+-]+;base64,|\x89PNG|GIF8|\ufffd?PNG\r?\n)|[^\n]{0,4096}\x00")
_AN_IMAGE = "image"
"""Stands for every image: that one pixel differs is no progress."""
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that waits for its answer, without its arguments."""

    name: str
    """At most 80 characters."""
    key: bytes
    """See ``call_key``."""
    tool_class: ToolClass | None


@dataclass(frozen=True, slots=True)
class Signature(Asked):
    """A call that counts."""

    contiguous: bytes
    """Of key and answer; for an error without its message."""
    scattered: bytes
    """Of key and answer, an error's message included."""
    outcome: ToolOutcome | None
    """None: its round ended without an answer."""

    @property
    def succeeded(self) -> bool:
        """Whether it is a success that counts: a note is none."""
        return self.outcome == "ok" and self.tool_class != "noop"

    @property
    def progresses(self) -> bool:
        """Whether it is a success of something other than looking, waiting or noting."""
        return self.outcome == "ok" and self.tool_class in {None, "mutate"}

    @property
    def slow(self) -> bool:
        """Whether repeating it is part of its use."""
        return self.tool_class in {"poll", "wait"}

    @property
    def working(self) -> bool:
        """Whether it is more than a look at something pending, or a note."""
        return self.tool_class not in {"poll", "noop"}


def asked(call: Call, classes: Mapping[str, ToolClass]) -> Asked:
    """A call, with the class that ``classes`` (tool name -> class), the host, or the command itself gives it."""
    name = sys.intern(shorten(call.name, _MAX_NAME_CHARS))
    return Asked(name, call_key(call.name, call.args), classes.get(call.name, call.tool_class) or _class_of(call))


def answered(call: Asked, result: Result) -> Signature:
    """The signatures of a call with its answer."""
    said = result.fingerprint or (_AN_IMAGE if _IMAGE.match(result.text) else fingerprint(result.text))
    scattered = _digest(call.key, result.outcome, said)
    contiguous = _digest(call.key, "error") if result.outcome == "error" else scattered
    return Signature(call.name, call.key, call.tool_class, contiguous, scattered, result.outcome)


def unanswered(call: Asked, call_id: str, round_number: int) -> Signature:
    """The signatures of a call that its round ended without an answer to: they equal no other's."""
    alone = _digest(b"unanswered", call_id, str(round_number))
    return Signature(call.name, alone, call.tool_class, alone, alone, None)


def call_key(name: str, args: Mapping[str, Any] | str) -> bytes:
    """8 bytes that are equal for calls of one tool with the same arguments.

    Neither the order of keys, nor how white space is laid out inside strings, nor commentary at the top
    level (a description, a request id …) makes a difference, unless there is nothing but commentary.
    """
    parsed = _parsed(args) if isinstance(args, str) else args
    if not isinstance(parsed, Mapping):
        return _digest(b"text", name, str(parsed))
    told = {key: value for key, value in parsed.items() if _plain(key) not in _COMMENTARY}
    canonical = json.dumps(_calm(told or parsed, _MAX_DEPTH), sort_keys=True, default=str)
    return _digest(b"call", name, canonical)


def _class_of(call: Call) -> ToolClass | None:
    """A shell command that sleeps is a wait."""
    if not isinstance(call.args, Mapping):
        return None
    commands = [call.args[key] for key in _COMMANDS if key in call.args]
    texts = ["\n".join(map(str, one)) if isinstance(one, list | tuple) else str(one) for one in commands]
    return "wait" if any(map(_SLEEPS.search, texts)) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _calm(value: Any, room: int) -> Any:
    match value:
        case str():
            return " ".join(value.split())
        case Mapping() if room:
            return {str(key): _calm(item, room - 1) for key, item in value.items()}
        case list() | tuple() if room:
            return [_calm(item, room - 1) for item in value]
        case Mapping() | list() | tuple():
            return None
    return value


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def _digest(first: bytes, *parts: str) -> bytes:
    digest = blake2b(first, digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(b"\0" + part.encode("utf-8", "surrogatepass"))
    return digest.digest()
