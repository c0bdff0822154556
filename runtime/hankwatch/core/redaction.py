"""Secrets are replaced before anything reaches the journal, a log, a report, a prompt or a page (design rule 11).

Two sources: the values of known key variables, and patterns so specific that they mean nothing else.
All matching is google-re2, linear in the text. On the emit path one scan over the encoded line decides that
nothing needs a closer look; only a suspicious line is walked string by string.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

import orjson
import re2

from hankwatch.core.text import clean_text

_MIN_SECRET_LENGTH = 8
_WORD = r"[A-Za-z0-9._~+/=-]"
_VARIABLE = r"(?:(?:API|ACCESS|SECRET|PRIVATE|AUTH|ENCRYPTION)_?KEY|SECRET|TOKEN|PASSWORD|PASSWD)"
_URL_PARAMETER = (
    r"(?i:[?&](?:api[_-]?key|key|access[_-]?token|auth[_-]?token|token|client[_-]?secret|x-amz-signature|sig)=)"
)

_PATTERNS: tuple[tuple[str, str, str], ...] = (
    # kind, pattern over text with one group around the secret, looser pattern over its encoded JSON line.
    # In a line the character before or after a secret may be the letter of an escape (\n, \t), so the looser
    # one has no word boundaries and no white space.
    (
        "private-key",
        r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*KEY(?: BLOCK)?-----|\z))",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    ("anthropic-key", r"\b(sk-ant-[A-Za-z0-9_-]{8,})", r"sk-ant-"),
    (
        "openai-key",
        r"\b(sk-(?:(?:proj|svcacct|admin|None|or-v1|lf)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,}))",
        r"sk-(?:proj|svcacct|admin|None|or-v1|lf)-|sk-[A-Za-z0-9]{20}",
    ),
    ("github-token", r"\b(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,})", r"gh[pousr]_|github_pat_"),
    ("gitlab-token", r"\b(gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,})", r"gl[a-z]{2,4}-[A-Za-z0-9_-]{16}"),
    (
        "aws-key-id",
        r"(?:^|[^A-Za-z0-9+/])((?:AKIA|ASIA)[A-Z0-9]{16})\b",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    ),
    ("google-key", r"(?:^|[^A-Za-z0-9+/_-])(AIza[A-Za-z0-9_-]{30,})", r"AIza[A-Za-z0-9_-]{30}"),
    ("google-oauth", r"\b(ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})", r"ya29\.|GOCSPX-"),
    ("slack-token", r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})", r"xox[abeoprs]-|xapp-"),
    (
        "stripe-key",
        r"\b((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,})",
        r"[sr]k_(?:live|test)_|whsec_",
    ),
    (
        "registry-token",
        r"\b(npm_[A-Za-z0-9]{30,}|pypi-AgEI[A-Za-z0-9_-]{30,}|dop_v1_[a-f0-9]{40,})",
        r"npm_[A-Za-z0-9]{30}|pypi-AgEI|dop_v1_",
    ),
    (
        "model-key",
        r"\b(hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{30,})",
        r"(?:hf_|gsk_|xai-|r8_|pplx-)[A-Za-z0-9]{30}",
    ),
    ("sendgrid-key", r"\b(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})", r"SG\.[A-Za-z0-9_-]{16}"),
    (
        "jwt",
        r"\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ",
    ),
    (
        "authorization",
        rf"(?i:authorization[\\\"']*\s*[:=]\s*[\\\"']*(?:basic|bearer|token|apikey|key)\s+)({_WORD}{{8,}})",
        r"(?i:authorization)",
    ),
    (
        "authorization",
        rf"(?i:authorization|\bx-(?:api-key|goog-api-key|auth-token))(?:[\\\"']*\s*[:=]\s*[\\\"']*)({_WORD}{{16,}})",
        r"(?i:x-(?:api-key|goog-api-key|auth-token))",
    ),
    ("bearer", rf"(?i:\bbearer)\s+({_WORD}{{20,}})", r"(?i:bearer)"),
    (
        "url-key",
        rf"{_URL_PARAMETER}([A-Za-z0-9%._~+/-]{{8,}}=*)",
        _URL_PARAMETER,
    ),
    (
        "url-password",
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'\[\]]*:([^\s/:@\"'\[\]]{3,})@",
        r"://[^/:@ \"]*:[^/:@ \"]+@",
    ),
    (
        "env-value",
        rf"\b(?:[A-Z0-9]+_)*{_VARIABLE}(?:_[A-Z0-9]+)*=[\\\"']*([A-Za-z0-9+][A-Za-z0-9+/_-]{{15,}}=*)",
        r"(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD)[A-Z0-9_]*=",
    ),
)

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE|AUTH)?KEY|(?:ACCESS|AUTH)?TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PAT)"
    r"(?:_|\d*$)",
    re.IGNORECASE,
)
_NAME_OF_SOMETHING_ELSE = re.compile(
    r"_(?:FILE|PATH|DIR|URL|URI|HOST|NAME|ID|TYPE|TTL|SOCK|LIMIT|COUNT|LENGTH|ALGORITHM)$", re.IGNORECASE
)


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
        values = sorted((v for v in names if len(v) >= _MIN_SECRET_LENGTH), key=lambda v: (-len(v), v))
        # A tool that prints JSON shows a value with its quotes and newlines escaped.
        known = {spelling: names[v] for v in reversed(values) for spelling in (_json_spelling(v), v)}
        spellings = list(reversed(known))
        self._scans = [(_PATTERN_SCAN, _PATTERN_KINDS)]
        if known:
            # Before the patterns, which might take only a part of a value.
            scan = _compile([f"({re2.escape(spelling)})" for spelling in spellings])
            self._scans.insert(0, (scan, tuple(known[spelling] for spelling in spellings)))
        in_a_line = [re2.escape(_json_spelling(spelling)) for spelling in spellings]
        self._line = _compile(in_a_line + [looser for _, _, looser in _PATTERNS])

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, enabled: bool = True) -> "Redactor":
        """Knows the value of every variable whose name says key, token, secret or password."""
        return cls(
            {
                name: value
                for name, value in environment.items()
                if _SECRET_NAME.search(name) and not _NAME_OF_SOMETHING_ELSE.search(name)
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
        for scan, kinds in self._scans:
            text = _replace(text, scan, kinds)
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


def _replace(text: str, scan: Any, kinds: tuple[str, ...]) -> str:
    """``text`` with the group of each match replaced by its mark; the same object without a match."""
    encoded = text.encode("utf-8", "surrogatepass")
    pieces: list[bytes] = []
    end = 0
    for match in scan.finditer(encoded):
        start, stop = match.span(match.lastindex)
        digest = hashlib.sha256(encoded[start:stop]).hexdigest()[:8]
        pieces += (encoded[end:start], f"[redacted:{kinds[match.lastindex - 1]}:{digest}]".encode())
        end = stop
    if not pieces:
        return text
    return b"".join((*pieces, encoded[end:])).decode("utf-8", "surrogatepass")


def _json_spelling(text: str) -> str:
    """How ``text`` stands inside a JSON string."""
    return orjson.dumps(text)[1:-1].decode()


def _compile(alternatives: list[str]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile("|".join(alternatives).encode(), options)


_PATTERN_KINDS = tuple(kind for kind, _, _ in _PATTERNS)
_PATTERN_SCAN = _compile([pattern for _, pattern, _ in _PATTERNS])
