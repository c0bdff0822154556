"""What holds for all watches: shown to whoever reads watches, changed by operators."""

from fastapi import APIRouter
from starlette.responses import Response

from hankwatch.serve.console.page import PageRoute, Visiting
from hankwatch.serve.context import Served
from hankwatch.serve.watch_settings import settings_view

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/watches/settings")
async def show_settings(serving: Served, visit: Visiting) -> Response:
    """Each setting, where it comes from, and for operators the form that changes it."""
    visit.caller.require("watches:read")
    settings = settings_view(await serving.watches.settings(), visit.caller)
    return await visit.page("watch_settings", settings=settings, may_set=visit.caller.principal.is_operator)
