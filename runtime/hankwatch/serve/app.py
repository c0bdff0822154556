"""The application: routes, errors, the OpenAPI document, and the gate before all of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio.to_thread
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from hankwatch import __version__
from hankwatch.core.tasks import task_group
from hankwatch.serve import chat, console, metrics, playground, runs, sessions, socket, sse, watch_settings, watches
from hankwatch.serve.context import Serving
from hankwatch.serve.gate import Gate
from hankwatch.serve.mcp_http import McpEndpoint
from hankwatch.serve.problems import DOCUMENTED, explain_errors
from hankwatch.watches.requests import WatchEdit, WatchRequest

_SUMMARY: Final = "Runs of hanks, what their sentinels saw, and watches."
_BODIES: Final = {
    ("/api/watches", "post"): "WatchRequest",
    ("/api/watches/{watch_id}", "patch"): "WatchEdit",
    (f"{chat.router.prefix}/proposals", "post"): "Proposal",
}
"""What is read by the rules of files, not by FastAPI's, and documented all the same."""


def make_app(serving: Serving) -> Gate:
    """An ASGI application over ``serving``; its lifespan keeps the live streams."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warm = partial(anyio.to_thread.run_sync, serving.shelf.warm, abandon_on_cancel=True)
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
        app.include_router(part.router)
    for part in console.PARTS:
        app.include_router(part.router)
    explain_errors(app)
    gate = Gate(app, serving.door, serving.clock)
    app.state.serving, app.state.gate = serving, gate
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's own way to change the document
    return gate


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        _, bodies = models_json_schema(
            [(WatchRequest, "validation"), (WatchEdit, "validation")], ref_template="#/components/schemas/{model}"
        )
        schemas = document["components"]["schemas"]
        schemas |= bodies["$defs"]
        schemas["Proposal"] = _without(schemas["WatchRequest"], chat.GIVEN)
        for (path, method), name in _BODIES.items():
            content = document["paths"][path][method]["requestBody"]["content"]
            content["application/json"]["schema"] = {"$ref": f"#/components/schemas/{name}"}
        if app.state.serving.door.policy is None:  # then everybody who reaches it may all
            for route in (route for path in document["paths"].values() for route in path.values()):
                route.pop("security", None)
        app.openapi_schema = document
    return app.openapi_schema


def _without(schema: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """An object's schema that lacks some of its properties."""
    properties = {name: value for name, value in schema["properties"].items() if name not in names}
    return {**schema, "title": "Proposal", "properties": properties}
