"""Logins of browsers: a cookie stands for a token, which is looked up in the policy anew with every request.

An EventSource and a link cannot send a bearer token, so the console's pages are asked for with a cookie. It is a random
number that means nothing elsewhere, is kept from scripts and from other sites, and dies with the server.
"""

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from hankwatch.core.clock import Clock

_COOKIE: Final = "hankwatch_login"
LASTS_S: Final = 12 * 3600.0
_MOST: Final = 1_000
"""Logins at a time; the oldest makes room."""


@dataclass(frozen=True, slots=True)
class _Login:
    token: str
    ends_s: float
    """On the monotonic clock."""


class Logins:
    """Who is logged in; used from any thread.

    Args:
        clock: Tells when one is over.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, _Login] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, token: str) -> str:
        """The cookie's value for whoever has shown this token."""
        value = secrets.token_urlsafe(32)
        with self._lock:
            self._known[_digest(value)] = _Login(token, self._clock.monotonic() + LASTS_S)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return value

    def token(self, headers: Mapping[str, str]) -> str | None:
        """The token that a request's cookie stands for; None without a login that still lasts."""
        value = login_of(headers)
        if value is None:
            return None
        with self._lock:
            login = self._known.get(_digest(value))
        return login.token if login is not None and self._clock.monotonic() < login.ends_s else None

    def end(self, headers: Mapping[str, str]) -> None:
        """Forget a request's login."""
        value = login_of(headers)
        if value is not None:
            with self._lock:
                self._known.pop(_digest(value), None)


def set_cookie(value: str, headers: Mapping[str, str], *, is_secure: bool) -> str:
    """The ``Set-Cookie`` header that begins a login for whoever sent ``headers``; an empty value ends it."""
    lasts = int(LASTS_S) if value else 0
    secure = "; Secure" if is_secure else ""
    return f"{cookie_name(headers)}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={lasts}{secure}"


def login_of(headers: Mapping[str, str]) -> str | None:
    """Our cookie's value in a request; those of other programs on this host may be written in any way."""
    name = cookie_name(headers)
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    return next((value for written, _, value in pairs if written == name and value), None)


def cookie_name(headers: Mapping[str, str]) -> str:
    """With the port as the browser has it: cookies are a host's, and each server of a host needs its own."""
    try:
        port = urlsplit(f"//{headers.get('host', '')}").port
    except ValueError:
        port = None
    return _COOKIE if port is None else f"{_COOKIE}_{port}"


def _digest(value: str) -> str:
    """What is kept: a look into memory or a timing of the search tells no cookie."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
