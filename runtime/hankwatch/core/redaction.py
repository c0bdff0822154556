"""Secrets are replaced before anything reaches the journal, a log, a report, a prompt or a page (design rule 11).

Two sources: the values of known key variables, and patterns so specific that they mean nothing else.
All matching is google-re2, linear in the text. On the emit path one scan over the encoded line decides that
nothing needs a closer look; only a suspicious line is walked string by string.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import is_
from typing import Any

import orjson
import re2

from hankwatch.core.secret_kinds import SECRET_KINDS, SecretKind
from hankwatch.core.secret_names import holds_secret
from hankwatch.core.text import clean_text

_MIN_SECRET_LENGTH = 8
_FOR_AGENTS = "HANKWEAVE_"
"""``HANKWEAVE_X`` reaches the agent as ``X`` (spec hank 6)."""


class _Scan:
    """All kinds in one expression; the number of the group that matched tells which."""

    def __init__(self, kinds: Sequence[SecretKind]) -> None:
        self._kinds = kinds
        self._expression = _compile([kind.pattern for kind in kinds])

    def replace(self, text: str) -> str:
        """``text`` with each secret replaced by its mark; the same object without one."""
        encoded = text.encode("utf-8", "surrogatepass")
        pieces: list[bytes] = []
        kept_to = position = 0
        while (match := self._expression.search(encoded, position)) is not None:
            kind = self._kinds[match.lastindex - 1]
            start, end = match.span(match.lastindex)
            secret = encoded[start:end]
            if kind.needs_digit and not any(digit in secret for digit in b"0123456789"):
                # Another kind may stand inside what this one would have taken.
                position = max(start - 1, match.start() + 1)
                continue
            mark = f"[redacted:{kind.name}:{hashlib.sha256(secret).hexdigest()[:8]}]"
            pieces += (encoded[kept_to:start], mark.encode())
            kept_to = position = end
        if not pieces:
            return text
        return b"".join((*pieces, encoded[kept_to:])).decode("utf-8", "surrogatepass")


_MAX_PASSES = 8


class Redactor:
    """Finds secrets in text and JSON and replaces each by ``[redacted:<kind>:<8 hex of its hash>]``.

    The hash lets a reader see that two places held the same secret. ``secrets`` maps a name (which becomes
    the kind) to a value; values shorter than 8 characters are ignored, they would hit ordinary text.
    Redacting twice changes nothing more. Stateless after construction.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None, *, enabled: bool = True) -> None:
        self._enabled = enabled
        names = {clean_text(value.strip()): name for name, value in (secrets or {}).items()}
        # The longest first: a value that contains another one is the one that was meant.
        values = sorted((v for v in names if len(v) >= _MIN_SECRET_LENGTH), key=len, reverse=True)
        known = {spelling: names[value] for value in values for spelling in _spellings(value)}
        kinds = [SecretKind(known[s], f"({re2.escape(s)})", re2.escape(_json_spelling(s))) for s in known]
        # Known values first: a pattern might take only a part of one.
        self._scans = [_Scan(kinds), _SPELLED] if kinds else [_SPELLED]
        self._line = _compile([kind.in_a_line for kind in (*kinds, *SECRET_KINDS)])

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, variables: Collection[str] = (), enabled: bool = True
    ) -> "Redactor":
        """Knows the value of every variable that ``holds_secret``, and of those named in ``variables``."""
        return cls(
            {
                name: value
                for name, value in environment.items()
                if name.removeprefix(_FOR_AGENTS) in variables or holds_secret(name, value)
            },
            enabled=enabled,
        )

    def suspects(self, line: bytes) -> bool:
        """Whether an encoded JSON line may hold a secret; False is certain, True is worth a closer look."""
        return self._enabled and self._line.search(line) is not None

    def text(self, text: str) -> str:
        """``text`` without its secrets; the same object when there are none."""
        if not self._enabled:
            return text
        # What one replacement uncovers beside it is found by the next pass; a text without secrets takes one.
        for _ in range(_MAX_PASSES):
            before = text
            for scan in self._scans:
                text = scan.replace(text)
            if text is before:
                break
        return text

    def data(self, data: dict[str, Any]) -> dict[str, Any]:
        """A JSON object without secrets in its keys and strings; the same object when there are none."""
        if not self._enabled:
            return data
        redacted: dict[str, Any] = _rewrite(data, self.text)
        return redacted


def _rewrite(value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with every string changed, sharing whatever stayed as it was."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        items = [(change(key), _rewrite(item, change)) for key, item in value.items()]
        same = all(k is old_k and v is old_v for (k, v), (old_k, old_v) in zip(items, value.items(), strict=True))
        return value if same else dict(items)
    if isinstance(value, list):
        new = [_rewrite(item, change) for item in value]
        return value if all(map(is_, new, value)) else new
    return value


def _spellings(value: str) -> tuple[str, str, str]:
    """A value as it is, in JSON, and in JSON within JSON: tools print it, agents wrap what tools print."""
    once = _json_spelling(value)
    return value, once, _json_spelling(once)


def _json_spelling(text: str) -> str:
    """How ``text`` stands inside a JSON string."""
    return orjson.dumps(text)[1:-1].decode()


def _compile(alternatives: list[str]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile("|".join(alternatives).encode(), options)


_SPELLED = _Scan(SECRET_KINDS)
