"""Logging in with a token, where there is a policy; a form, so that it needs no script."""

from http import HTTPStatus
from math import ceil
from typing import Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from hankwatch.core.request_errors import Unauthenticated
from hankwatch.pages.console import console_page
from hankwatch.serve.console.page import PageRoute, html
from hankwatch.serve.context import Served
from hankwatch.serve.logins import set_cookie

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_MAX_PATH: Final = 2_000


@router.get("/login")
async def ask(next: str = "/") -> Response:  # noqa: A002 - as the address has it
    """The form."""
    return await _form(_local(next))


@router.post("/login")
async def log_in(request: Request, serving: Served) -> Response:
    """Exchange a token for a cookie."""
    given = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    token, path = given.get("token", [""])[0].strip(), _local(given.get("next", ["/"])[0])
    guesses, address = serving.door.guesses, request.client.host if request.client else ""
    if (wait_s := guesses.wait_s(address)) > 0:
        said = f"too many wrong tokens came from your address; try again in {ceil(wait_s)} s"
        answer = await _form(path, said=said, status=HTTPStatus.TOO_MANY_REQUESTS)
        answer.headers["Retry-After"] = str(ceil(wait_s))
        return answer
    try:
        serving.door.holder(token)
    except Unauthenticated as error:
        guesses.add(address)
        return await _form(path, said=str(error), status=HTTPStatus.UNAUTHORIZED)
    serving.door.logins.end(request.headers)  # what the browser had
    cookie = set_cookie(serving.door.logins.begin(token), request.headers, is_secure=request.url.scheme == "https")
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, {"Set-Cookie": cookie})


@router.post("/logout")
async def log_out(request: Request, serving: Served) -> Response:
    """Forget the login."""
    serving.door.logins.end(request.headers)
    cookie = set_cookie("", request.headers, is_secure=request.url.scheme == "https")
    return RedirectResponse("/login", HTTPStatus.SEE_OTHER, {"Set-Cookie": cookie})


async def _form(path: str, *, said: str = "", status: int = HTTPStatus.OK) -> Response:
    return await html(lambda: console_page("login", path="", next=path, said=said, has_login=False), status)


def _local(path: str) -> str:
    """A path of this server, whatever an address says: a login leads nowhere else."""
    is_ours = path.startswith("/") and path[1:2] not in {"/", "\\"} and path.isprintable() and len(path) <= _MAX_PATH
    return path if is_ours else "/"
