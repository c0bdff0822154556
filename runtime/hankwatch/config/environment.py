"""What of our environment a child process gets (design rule 11, reference 2.8)."""

import re
from collections.abc import Collection, Mapping

COMMON_NAMES = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ", "TMPDIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "VIRTUAL_ENV", "NODE_PATH", "NVM_DIR", "BUN_INSTALL",
})  # fmt: skip
"""What any program may need to run at all: where things are, language, proxies, certificates."""
COMMON_PREFIXES = ("LC_", "XDG_")
_GIVEN = "HANKWEAVE_"
_OURS = ("HANKWEAVE_RUNTIME_", "HANKWEAVE_SENTINEL_")
_UNSET = "unset"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def child_environment(
    environ: Mapping[str, str], extra: Mapping[str, str] | None = None, *, keep: Collection[str] = ()
) -> dict[str, str]:
    """The environment of a child process.

    From ``environ``: what any program needs, and the names in ``keep`` (an agent program's own; one that ends
    in ``*`` is a prefix). Then every ``HANKWEAVE_X=v`` as ``X=v``, where the value ``unset`` removes ``X``;
    ``HANKWEAVE_RUNTIME_*`` and ``HANKWEAVE_SENTINEL_*`` are ours and stay here. ``extra`` goes last, as it is.
    """
    prefixes = (*COMMON_PREFIXES, *(name[:-1] for name in keep if name.endswith("*")))
    child = {
        name: value
        for name, value in environ.items()
        if (name in COMMON_NAMES or name in keep or name.startswith(prefixes)) and not name.startswith(_GIVEN)
    }
    for name, value in environ.items():
        target = name.removeprefix(_GIVEN)
        if target == name or name.startswith(_OURS) or not _VARIABLE.fullmatch(target):
            continue
        if value == _UNSET:
            child.pop(target, None)
        else:
            child[target] = value
    return {**child, **(extra or {})}


def is_present(name: str, environ: Mapping[str, str]) -> bool:
    """A variable that a hank requires: ``NAME`` or ``HANKWEAVE_NAME`` is not empty (reference 2.1)."""
    return bool(environ.get(name) or environ.get(_GIVEN + name))
