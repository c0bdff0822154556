"""What every page of the console shares: who looks at it, its frame, its headers, its errors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote

import anyio.to_thread
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request as AnyRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response

from hankwatch.core.errors import HankwatchError
from hankwatch.core.request_errors import Unauthenticated
from hankwatch.pages.console import console_page
from hankwatch.serve.auth import Caller
from hankwatch.serve.context import Served
from hankwatch.serve.problems import fault_of, problem, told_of

PATIENCE_S: Final = 0.3
"""How long a page waits for a long journal to be read; it shows what is known and reads on when it is asked again."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "same-origin"}
"""No inline script or style, nothing of elsewhere, and forms lead here only; a form says which page it comes from."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody looks at a page."""

    request: Request
    caller: Caller
    has_login: bool
    """There is a policy, so one can log out."""

    async def page(self, template: str, *, status: int = HTTPStatus.OK, **context: Any) -> Response:
        """That template as a page."""
        context |= {
            "status": int(status),
            "path": self.request.url.path,
            "caller": self.caller,
            "has_login": self.has_login,
        }
        return await html(partial(console_page, template, **context), status)


async def html(render: Callable[[], str], status: int = HTTPStatus.OK) -> Response:
    """What ``render`` makes, in a thread, as a page."""
    return HTMLResponse(await anyio.to_thread.run_sync(render), status, HEADERS)


def _visit(request: Request, serving: Served) -> Visit:
    door = serving.door
    return Visit(request, door.caller(request.headers), door.policy is not None)


Visiting = Annotated[Visit, Depends(_visit)]
"""Whoever looks at a page; without a login the login page comes instead."""


class PageRoute(APIRoute):
    """A route whose errors are pages: the login for whoever is nobody yet, else what was wrong."""

    def get_route_handler(self) -> Callable[[AnyRequest], Any]:
        """See ``APIRoute``."""
        handle = super().get_route_handler()

        async def handled(request: AnyRequest) -> Response:
            try:
                return await handle(request)
            except Unauthenticated:
                return RedirectResponse(f"/login?next={_path(request)}", HTTPStatus.SEE_OTHER)
            except HankwatchError as error:
                return await _said(request, *told_of(error))
            except RequestValidationError as error:
                detail = "; ".join(fault_of(fault) for fault in error.errors())
                return await _said(
                    request, HTTPStatus.UNPROCESSABLE_ENTITY, detail, "the address, without what follows its ?"
                )

        return handled


async def not_found(request: AnyRequest, _: Exception) -> Response:
    """What no route knows: a page for whoever reads pages, else a problem."""
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/"):
        return await _said(request, HTTPStatus.NOT_FOUND, f"there is no page {request.url.path}", None)
    return problem(HTTPStatus.NOT_FOUND, "not-found", HTTPStatus.NOT_FOUND.phrase)


async def _said(request: AnyRequest, status: int, detail: str, hint: str | None) -> Response:
    door = request.app.state.serving.door
    context: dict[str, Any] = {"status": int(status), "detail": detail, "hint": hint, "has_login": False}
    if (caller := door.known(request.headers)) is not None:
        context |= {"caller": caller, "has_login": door.policy is not None}
    return await html(partial(console_page, "error", path=request.url.path, **context), status)


def _path(request: AnyRequest) -> str:
    """Where to go on after the login: a path of this server, quoted."""
    return quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="")
