"""``GET /console/live``: tells a page which of its parts have changed, so that it asks for itself again.

It carries no content: what a page shows comes from the page's own address, for whoever is logged in, and without the
script the same page is read by loading it again.
"""

from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Annotated, Final

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from hankwatch.core.errors import HankwatchError
from hankwatch.serve.context import Asking, Served, Serving
from hankwatch.serve.live import size_of

router = APIRouter(include_in_schema=False)
LOOK_S: Final = 0.5
_BEAT: Final = 30
"""Looks without news after which a client that is gone is noticed."""
_PROTOCOL: Final = "console"
_LISTED: Final = 50
Look = Callable[[], Hashable]
"""What stands there now; blocks."""


@router.get("/console/live")
async def live(
    request: Request, serving: Served, caller: Asking, run: Annotated[str | None, Query(max_length=300)] = None
) -> Response:
    """Messages ``changed`` with the name of a part: ``run``, ``runs``."""
    if run is None:
        caller.require("runs:read")
        looks: dict[str, Look] = {"runs": partial(_runs, serving)} if caller.sees_runs else {}
    else:
        named = await anyio.to_thread.run_sync(partial(serving.run, caller, run, within_s=0.0))
        looks = {"run": lambda: (size_of(named.followed.journal), named.followed.live, named.followed.share_read)}
    serving.streams.require_room()
    return StreamingResponse(
        _messages(serving, looks, partial(_still_known, serving, request)),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _messages(
    serving: Serving, looks: dict[str, Look], is_known: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    with serving.streams.counted(_PROTOCOL):
        yield b"retry: 2000\n\n"
        async with aclosing(_changes(serving, looks)) as changes:
            async for parts in changes:
                if not is_known():
                    return
                yield b"".join(b"event: changed\ndata: %b\n\n" % part.encode() for part in parts) or b":\n\n"


async def _changes(serving: Serving, looks: dict[str, Look]) -> AsyncGenerator[list[str], None]:
    """Which parts are not as they were; now and then none."""
    seen = {part: await anyio.to_thread.run_sync(look) for part, look in looks.items()}
    quiet = 0
    while not serving.streams.closing:
        await serving.clock.sleep(LOOK_S)
        now = {part: await anyio.to_thread.run_sync(look) for part, look in looks.items()}
        changed = [part for part in looks if now[part] != seen[part]]
        seen, quiet = now, 0 if changed else quiet + 1
        if changed or quiet % _BEAT == 0:
            yield changed


def _runs(serving: Serving) -> Hashable:
    return tuple((one.execution.name, size_of(one.journal)) for one in islice(serving.shelf.executions(), _LISTED))


def _still_known(serving: Serving, request: Request) -> bool:
    try:
        serving.door.caller(request.headers)
    except HankwatchError:
        return False
    return True
