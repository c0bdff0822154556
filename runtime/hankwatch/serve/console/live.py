"""``GET /console/live``: tells a page which of its parts have changed, so that it asks for itself again.

What a page shows comes from the page's own address, for whoever is logged in, and without the script the same page is
read by loading it again. Beside that it tells of watches, whatever page is open: a ``notice`` for each signal that is
worth interrupting for, once, and only if its reader may know of the watch.
"""

from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Annotated, Final

import anyio.to_thread
import orjson
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from hankwatch.pages.watch_words import flood, notice
from hankwatch.serve.auth import Caller
from hankwatch.serve.bulletin import Bulletin, Seat
from hankwatch.serve.context import Asking, Served, Serving
from hankwatch.serve.live import size_of
from hankwatch.watches.authority import Principal

router = APIRouter(include_in_schema=False)
LOOK_S: Final = 0.5
_BEAT: Final = 30
"""Looks without news after which a client that is gone is noticed."""
_PROTOCOL: Final = "console"
_LISTED: Final = 50
_DIGITS: Final = 18
Look = Callable[[], Hashable]
"""What stands there now; blocks."""


@router.get("/console/live")
async def live(
    request: Request,
    serving: Served,
    caller: Asking,
    run: Annotated[str | None, Query(max_length=300)] = None,
    told: Annotated[int | None, Query(ge=0, lt=10**_DIGITS)] = None,
) -> Response:
    """Messages ``changed`` with the name of a part: ``run``, ``runs``, ``watches``; and ``notice``.

    The first, ``here``, has the number of the latest notice; a page that comes back sends it as ``told``.
    """
    if run is None:
        caller.require("runs:read")
        looks: dict[str, Look] = {"runs": partial(_runs, serving)} if caller.sees_runs else {}
    else:
        named = await anyio.to_thread.run_sync(partial(serving.run, caller, run, within_s=0.0))
        looks = {"run": lambda: (size_of(named.followed.journal), named.followed.live, named.followed.share_read)}
    if "watches:read" in caller.scopes:
        looks["watches"] = lambda: serving.bulletin.changes
    serving.streams.require_room()
    return StreamingResponse(
        _messages(serving, looks, partial(serving.door.known, request.headers), _last_told(request, told)),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _messages(
    serving: Serving, looks: dict[str, Look], known: Callable[[], Caller | None], after: int | None
) -> AsyncGenerator[bytes, None]:
    bulletin = serving.bulletin
    with serving.streams.counted(_PROTOCOL):
        async with bulletin.seat(partial(_reader, known), after) as seat:
            yield b"retry: 2000\nid: %d\nevent: here\ndata: now\n\n" % bulletin.position
            async with aclosing(_changes(serving, looks, seat)) as changes:
                async for parts in changes:
                    if known() is None:
                        return
                    said = b"".join(b"event: changed\ndata: %b\n\n" % part.encode() for part in parts)
                    yield said + _notices(seat, bulletin) or b":\n\n"


async def _changes(serving: Serving, looks: dict[str, Look], seat: Seat) -> AsyncGenerator[list[str], None]:
    """Which parts are not as they were; now and then, and when something is to be told, none."""
    seen = {part: await anyio.to_thread.run_sync(look) for part, look in looks.items()}
    quiet = 0
    while not serving.streams.closing:
        await serving.clock.sleep(LOOK_S)
        now = {part: await anyio.to_thread.run_sync(look) for part, look in looks.items()}
        changed = [part for part in looks if now[part] != seen[part]]
        seen, quiet = now, 0 if changed else quiet + 1
        if changed or seat.waiting or quiet % _BEAT == 0:
            yield changed


def _notices(seat: Seat, bulletin: Bulletin) -> bytes:
    """What waits for the page; its number is what a page that was cut off comes back with."""
    told, missed = seat.take()
    said = [(one.number, notice(one)) for one in told]
    if missed:
        said.append((bulletin.position, flood(missed)))
    return b"".join(b"id: %d\nevent: notice\ndata: %b\n\n" % (number, orjson.dumps(one)) for number, one in said)


def _reader(known: Callable[[], Caller | None]) -> Principal | None:
    caller = known()
    return None if caller is None or "watches:read" not in caller.scopes else caller.principal


def _last_told(request: Request, told: int | None) -> int | None:
    """What the same page was told last, before it lost its stream or gave it up; a new page knows nothing."""
    written = request.headers.get("last-event-id", "")
    return int(written) if written.isdecimal() and len(written) < _DIGITS else told


def _runs(serving: Serving) -> Hashable:
    return tuple((one.execution.name, size_of(one.journal)) for one in islice(serving.shelf.executions(), _LISTED))
