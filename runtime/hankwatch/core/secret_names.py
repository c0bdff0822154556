"""Which variables hold secrets: their names say so, and their values do not look like something else.

A missed secret stands in the journal for good; a path or a word of ours that is taken for one mangles every
report. So names are read widely and values decide the rest.
"""

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""``apiKey``, ``API_KEY`` and ``api-key`` have the same words."""
_PASSWORD = re.compile(r"(?!ASKPASS|BYPASS|COMPASS|OLDPWD).*(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE|PASS|PWD)S?")
"""Also glued to something: ``PGPASSWORD``, ``SSHPASS``, ``MYSQL_PWD``; not ``PWD``, the working directory."""
_OTHER_SECRET = re.compile(
    r".*(?:TOKEN|SECRET|CREDENTIAL)S?|CREDS?|PATS?|(?:API|ACCESS|SECRET|PRIVATE|AUTH|ENCRYPTION|SIGNING|MASTER|SSH)?KEYS?"
)
_SECRET_AT_THE_END = re.compile(r"O?AUTH|AUTHORIZATION|BEARER|JWT|COOKIES?")
"""``REDISCLI_AUTH``, but not ``AUTH_DOMAIN``."""
_OF_SOMETHING_ELSE = frozenset(
    [
        "ALGORITHM",
        "BACKEND",
        "COUNT",
        "DIR",
        "DIRECTORY",
        "DISABLED",
        "ENABLED",
        "ENDPOINT",
        "EXPIRES",
        "EXPIRY",
        "FILE",
        "FORMAT",
        "HOST",
        "ID",
        "LENGTH",
        "LIMIT",
        "METHOD",
        "MODE",
        "NAME",
        "PATH",
        "PORT",
        "PROVIDER",
        "REGION",
        "REQUIRE",
        "REQUIRED",
        "SIZE",
        "SOCK",
        "STORE",
        "TIMEOUT",
        "TTL",
        "TYPE",
        "URI",
        "URL",
        "USER",
        "USERNAME",
        "VERSION",
    ]
)
"""Last words of names that say something about a secret and hold none: ``TOKEN_URL``, ``KEY_FILE``."""
_OF_A_COUNT = frozenset({"MAX", "MIN", "NUM", "TOTAL"})
"""``MAX_TOKENS`` counts the tokens of a model."""
_NUMBER = re.compile(r"[-+]?\d[\d._,:]*[A-Za-z%]{0,2}")
_WORD_VALUE = re.compile(r"[A-Z]?[a-z]{1,12}|[A-Z]{1,12}")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ -]+)+[/\\]?")
_DENSE = re.compile(r"(?=[^/\\]*[a-z])(?=[^/\\]*[A-Z])(?=[^/\\]*\d)[^/\\]{12}")
"""Part of a path that no person would name so: base64 can begin with a slash."""


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable of this name and value is a secret (design rule 11).

    Paths are never secrets; numbers and plain words only where the name says password.
    """
    words = [word.upper() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()  # TOKEN2 is a token
    if not words or words[-1] in _OF_SOMETHING_ELSE or not _OF_A_COUNT.isdisjoint(words):
        return False
    value = value.strip()
    if _is_path(value):
        return False
    if _any_is(_PASSWORD, words) and name not in {"PWD", "OLDPWD"}:
        return True
    plain = _NUMBER.fullmatch(value) or _WORD_VALUE.fullmatch(value)
    return not plain and (_any_is(_OTHER_SECRET, words) or _SECRET_AT_THE_END.fullmatch(words[-1]) is not None)


def _any_is(pattern: re.Pattern[str], words: list[str]) -> bool:
    return any(pattern.fullmatch(word) for word in words)


def _is_path(value: str) -> bool:
    return _PATH.fullmatch(value) is not None and _DENSE.search(value) is None
