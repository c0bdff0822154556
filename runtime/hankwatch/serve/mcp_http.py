"""The same tools at ``POST /mcp`` (streamable HTTP): by the server's own gate and tokens, one answer a request.

No session is kept, so nothing is held for clients that do not come back, and every request is answered for the token
that it brings itself.
"""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hankwatch.serve.context import Serving
from hankwatch.serve.gate import MAX_BODY_BYTES
from hankwatch.serve.mcp_asker import Asker
from hankwatch.serve.mcp_server import make_server
from hankwatch.watches.service import WatchService

PATH = "/mcp"


class McpEndpoint:
    """An ASGI application; it answers while ``manager`` runs."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.manager = StreamableHTTPSessionManager(
            make_server(self._asker),
            json_response=True,
            stateless=True,
            max_request_body_size=MAX_BODY_BYTES,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._serving.door.caller(Headers(scope=scope))  # nobody unknown comes past this
        await self.manager.handle_request(scope, receive, send)

    def route(self) -> Route:
        """Where it is reached."""
        return Route(PATH, self, methods=["POST"], include_in_schema=False)

    def _asker(self, context: ServerRequestContext[Any, Any]) -> Asker:
        serving, request = self._serving, context.request
        assert isinstance(request, Request)

        async def watches() -> WatchService:
            return serving.watches

        return Asker(
            serving.door.caller(request.headers),
            serving.shelf,
            watches,
            serving.clock,
            watches_enabled=serving.watches.agents_enabled,
        )
