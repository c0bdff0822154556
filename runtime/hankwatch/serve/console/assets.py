"""What the pages load: two style sheets and one script, all of them ours."""

from fastapi import APIRouter
from starlette.responses import Response

from hankwatch.pages.console import ASSETS, Asset, asset

router = APIRouter(include_in_schema=False)


@router.get("/assets/{name}")
async def get_asset(name: Asset) -> Response:
    """One of them."""
    return Response(asset(name), media_type=ASSETS[name], headers={"Cache-Control": "no-cache"})
