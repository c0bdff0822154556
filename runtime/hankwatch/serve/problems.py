"""Errors as HTTP has them: problem+json (RFC 9457), one status for each class of the tree."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from hankwatch.core.errors import (
    CapReached,
    Forbidden,
    HankwatchError,
    IdTaken,
    InfrastructureError,
    NotOfRun,
    OrderRefused,
    RunNotFound,
    RunNotLive,
    Untimely,
    UsageError,
    WatchInvalid,
    WatchNotFound,
    WrongState,
)
from hankwatch.core.request_errors import (
    CrossSite,
    ScopeMissing,
    SecretInAddress,
    TooManyStreams,
    TooManyTrials,
    Unauthenticated,
    WrongProtocolVersion,
)

_LOG = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"
_STATUSES: Final[Mapping[type[HankwatchError], int]] = {
    IdTaken: 409,
    WrongState: 409,
    Untimely: 409,
    WatchInvalid: 422,
    WatchNotFound: 404,
    RunNotFound: 404,
    NotOfRun: 404,
    RunNotLive: 409,
    CapReached: 409,
    OrderRefused: 409,
    Forbidden: 403,
    ScopeMissing: 403,
    CrossSite: 403,
    Unauthenticated: 401,
    WrongProtocolVersion: 400,
    SecretInAddress: 400,
    TooManyStreams: 503,
    TooManyTrials: 503,
    UsageError: 400,
    InfrastructureError: 503,
    HankwatchError: 500,
}
"""The first class of the error's own line that stands here counts."""
_HINTS: Final[Mapping[type[HankwatchError], str]] = {
    RunNotFound: "GET /api/runs lists them",
    RunNotLive: "GET /api/runs shows which are live",
    WatchNotFound: "GET /api/watches lists those you may read",
}
_MAX_FAULTS: Final = 50
DOCUMENTED: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "What was wrong, as problem+json.",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail", "code"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                        "code": {"type": "string"},
                        "hint": {"type": "string"},
                        "faults": {"type": "array", "items": {"type": "string"}},
                    },
                },
                "example": {
                    "type": "urn:hankwatch:error:watch-not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "there is no watch 'deploy'",
                    "code": "watch-not-found",
                    "hint": "GET /api/watches lists those you may read",
                },
            }
        },
    }
}
"""What every route may answer, for the OpenAPI document."""


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    hint: str | None = None,
    faults: list[str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """One error as a response."""
    body: dict[str, Any] = {
        "type": f"urn:hankwatch:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if hint is not None:
        body["hint"] = hint
    if faults:
        body["faults"] = faults
    return Response(orjson.dumps(body), status, dict(headers or {}), MEDIA_TYPE)


def told_of(error: HankwatchError) -> tuple[int, str, str | None]:
    """The status, the words and the hint for an error of the tree; nothing of this machine stands in them."""
    kinds = type(error).__mro__
    status = next(_STATUSES[kind] for kind in kinds if kind in _STATUSES)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, TooManyStreams | TooManyTrials):
        _LOG.warning("a request failed: %s", error)
        return status, "something this server stands on failed; its log says what", None
    detail = f"no run is named {error.name!r}" if isinstance(error, RunNotFound) else str(error)
    return status, detail, next((_HINTS[kind] for kind in kinds if kind in _HINTS), error.hint)


def problem_of(error: HankwatchError) -> Response:
    """An error of the tree as a response."""
    status, detail, hint = told_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    faults = list(error.faults) if isinstance(error, WatchInvalid) else None
    return problem(status, error.code, detail, hint=hint, faults=faults, headers=headers)


def explain_errors(app: FastAPI) -> None:
    """Let every failure of a route be a problem."""

    async def known(_: Request, error: Exception) -> Response:
        assert isinstance(error, HankwatchError)
        return problem_of(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        faults = [fault_of(fault) for fault in error.errors()[:_MAX_FAULTS]]
        return problem(422, "request-invalid", "; ".join(faults), faults=faults)

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and (methods := _methods(app, request.url.path)):
            headers["Allow"] = ", ".join(methods)  # the router tells those of the first route alone
        return problem(error.status_code, code, str(error.detail), headers=headers)

    async def unreadable(_: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        _LOG.warning("a request failed: %s", error)
        return problem(503, "unreadable", f"a file that this needs cannot be read: {error.strerror}")

    async def unknown(_: Request, error: Exception) -> Response:
        return problem(500, "internal", f"{type(error).__name__}: this is a defect of hankwatch; its log says where")

    app.add_exception_handler(HankwatchError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(OSError, unreadable)
    app.add_exception_handler(Exception, unknown)


def _methods(app: FastAPI, path: str) -> list[str]:
    """All documented methods of a path; of several templates the one with the fewest variables is meant."""
    paths = app.openapi()["paths"]
    fitting = [template for template in paths if compile_path(template)[0].match(path)]
    meant = min(fitting, key=lambda template: template.count("{"), default=None)
    return sorted(method.upper() for method in paths.get(meant, ()))


def fault_of(fault: Mapping[str, Any]) -> str:
    """Where in a request something is wrong, and what."""
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
