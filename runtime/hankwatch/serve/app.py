"""The application: routes, errors, the OpenAPI document, and the gate before all of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio.to_thread
from fastapi import Depends, FastAPI

from hankwatch import __version__
from hankwatch.core.tasks import task_group
from hankwatch.serve import (
    chat,
    console,
    metrics,
    openapi,
    playground,
    runs,
    sessions,
    socket,
    sse,
    watch_settings,
    watches,
)
from hankwatch.serve.console.page import not_found
from hankwatch.serve.context import Serving, require_single
from hankwatch.serve.gate import Gate
from hankwatch.serve.mcp_http import McpEndpoint
from hankwatch.serve.problems import DOCUMENTED, explain_errors

_SUMMARY: Final = "Runs of hanks, what their sentinels saw, and watches."


def make_app(serving: Serving) -> Gate:
    """An ASGI application over ``serving``; its lifespan keeps the live streams."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warm = partial(anyio.to_thread.run_sync, console.warm, serving.shelf, abandon_on_cancel=True)
        async with serving.streams.running(), serving.trials.running(), mcp.manager.run(), task_group() as tasks:
            tasks.start_soon(warm)
            tasks.start_soon(serving.bulletin.run)
            yield
            tasks.cancel_scope.cancel()

    mcp = McpEndpoint(serving)
    app = FastAPI(
        title="hankwatch",
        summary=_SUMMARY,
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=DOCUMENTED,
    )
    app.router.routes.append(mcp.route())
    for part in (runs, playground, sse, socket, watch_settings, watches, sessions, chat, metrics):
        app.include_router(part.router, dependencies=[Depends(require_single)])
    for part in console.PARTS:
        app.include_router(part.router)
    explain_errors(app)
    app.add_exception_handler(HTTPStatus.NOT_FOUND, not_found)
    gate = Gate(app, serving.door, serving.clock)
    app.state.serving, app.state.gate = serving, gate
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]  # FastAPI's own way to change the document
    return gate
