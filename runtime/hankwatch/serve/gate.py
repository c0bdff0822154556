"""What every request passes: who may call from a browser, and what every answer carries."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hankwatch.core.clock import Clock
from hankwatch.core.errors import HankwatchError
from hankwatch.core.limits import within
from hankwatch.core.request_errors import CrossSite, SecretInAddress
from hankwatch.serve.auth import Door, is_loopback
from hankwatch.serve.logins import login_of
from hankwatch.serve.problems import problem, problem_of

MAX_BODY_BYTES: Final = 256 * 1024
_TAKEN_BYTES: Final = 4 * 1024 * 1024
"""Of one that is too large, what is read all the same."""
BODY_S: Final = 10.0
"""Longest that a body may take to come."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS: Final = _SAFE | {"POST", "PATCH", "DELETE", "PUT"}
_SECRETS: Final = frozenset({"token", "access_token", "bearer", "api_key", "apikey", "authorization", "password"})
"""Names under which people put tokens into addresses, where logs and histories keep them."""
_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Gate:
    """Refuses what comes from other sites, and sets the headers that keep answers from being more than data.

    There is no CORS: another site's page can send what needs no preflight and read nothing. What it can send is
    refused here, by ``Origin`` and ``Sec-Fetch-Site``; a body has to be JSON, which needs a preflight. Where
    everybody on loopback is the operator, ``Host`` has to be a loopback name, or a name that was made to lead here
    (DNS rebinding) would make another site the same one.
    """

    def __init__(self, app: ASGIApp, door: Door, clock: Clock) -> None:
        self._app = app
        self._door = door
        self._clock = clock
        self.answers: Counter[tuple[str, str, int]] = Counter()
        """By method, route and status."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # a socket's route asks `require_welcome` itself
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"])
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        try:
            require_welcome(self._door, headers, scope["method"], scope["query_string"])
            _require_page(headers, scope["method"])
        except HankwatchError as error:
            await problem_of(error)(scope, receive, send_safely)
            return
        if has_body(headers):
            body = await self._body(headers, receive, _FORM if scope["path"] in FORMS else _JSON)
            if isinstance(body, Response):
                await body(scope, receive, send_safely)
                return
            receive = _replayed(body, receive)
        await self._app(scope, receive, send_safely)

    async def _body(self, headers: Headers, receive: Receive, media_type: str) -> bytes | Response:
        """A request's body, or why it is not taken."""
        if (
            "transfer-encoding" in headers and "content-length" in headers
        ):  # whoever is between may believe the other one
            return problem(400, "two-lengths", "a request says how long it is in one way only", headers=_CLOSE)
        if headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
            wanted = "JSON" if media_type == _JSON else "a form"
            return problem(
                415, "unsupported-media-type", f"a body has to be {wanted}", hint=f"Content-Type: {media_type}"
            )
        try:
            body = await within(self._clock, BODY_S, partial(_read, receive))
        except TimeoutError:
            return problem(408, "request-timeout", f"the body did not come within {BODY_S:g} s", headers=_CLOSE)
        if len(body) > MAX_BODY_BYTES:
            return problem(413, "too-large", f"a body has at most {MAX_BODY_BYTES} bytes", headers=_CLOSE)
        return body

    def _count(self, scope: Scope, status: int) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.answers[method, getattr(scope.get("route"), "path", "other"), status] += 1


FORMS: Final = frozenset({"/login", "/logout"})
"""Paths that take a form of the console: a login works without a script."""
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"
_CLOSE: Final = {"Connection": "close"}


async def _read(receive: Receive) -> bytes:
    """The body, or a little more than it may be; the rest is taken and forgotten, or the refusal might get lost."""
    body, size_bytes = bytearray(), 0
    while size_bytes <= _TAKEN_BYTES:
        message = await receive()
        part = message.get("body", b"")
        size_bytes += len(part)
        if len(body) <= MAX_BODY_BYTES:
            body += part
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            break
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, then whatever else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def has_body(headers: Headers) -> bool:
    """Whether a request brings one."""
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip() != "0"


def require_welcome(door: Door, headers: Mapping[str, str], method: str, query: bytes) -> None:
    """Refuse what another site's page makes a browser send, and secrets in addresses.

    Raises:
        CrossSite: it comes from another site, or by a name that is none of this machine's.
        SecretInAddress: it holds a token.
    """
    if door.policy is None and not is_loopback(_host(headers.get("host", ""))):
        raise CrossSite("this server answers to loopback names only", hint="call 127.0.0.1, or use a policy file")
    _require_same_site(headers, method)
    _require_no_secret(query)


def _require_page(headers: Mapping[str, str], method: str) -> None:
    """What acts with a browser's cookie comes from a page of ours, and says so."""
    acts = method not in _SAFE and login_of(headers) is not None
    if acts and "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        raise CrossSite("a request with a login's cookie has to say which page it comes from")


def _require_same_site(headers: Mapping[str, str], method: str) -> None:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        raise CrossSite(f"requests of pages of {origin!r} are not answered")
    site = headers.get("sec-fetch-site", "none")
    follows_link = headers.get("sec-fetch-mode") == "navigate" and method in _SAFE
    if site not in {"none", "same-origin"} and not follows_link:
        raise CrossSite("requests of other sites' pages are not answered")


def _host(written: str) -> str:
    """The name without its port."""
    try:
        return urlsplit(f"//{written}").hostname or ""
    except ValueError:
        return ""


def _require_no_secret(query: bytes) -> None:
    if not query:
        return
    named = {name.lower() for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}
    if found := sorted(named & _SECRETS):
        raise SecretInAddress(found[0])
