"""``GET /api/runs/{id}/stream``: events as they are written, as server-sent events."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Final

import anyio.to_thread
import orjson
from fastapi import APIRouter, Header, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Send

from hankwatch.core.errors import UsageError
from hankwatch.core.limits import within
from hankwatch.serve.context import Asking, Served, Serving
from hankwatch.serve.events import LAST_CURSOR, Wanted, encoded
from hankwatch.serve.live import Batch, Note
from hankwatch.serve.query import Cursor, OneCodon, Types

_LOG = logging.getLogger(__name__)
SEND_S: Final = 20.0
"""Longest that a client may take to accept what was sent; a batch is at most a few hundred kilobytes."""
_PROTOCOL: Final = "sse"
_RETRY_MS: Final = 2_000
router = APIRouter(tags=["runs"])
_DOCUMENTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events, one JSON object in each message's data; its id is the cursor to go on behind.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'id: 842\ndata: {"cursor":842,"id":"0199…","timestamp":"2026-11-30T17:00:32.123Z",'
                '"type":"tool.result","data":{}}\n\n',
            }
        },
    }
}


@router.get("/api/runs/{run_id}/stream", response_class=Response, responses=_DOCUMENTED)
async def stream(
    run_id: str,
    request: Request,
    serving: Served,
    caller: Asking,
    *,
    after: Cursor | None = None,
    types: Types = [],  # noqa: B006 - FastAPI copies it
    codon: OneCodon = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Follow a run: what it writes from now on, or everything behind ``Last-Event-ID`` or ``after``.

    A message without a name is an event. ``reset`` says that what comes is not behind what was sent, ``closed`` is the
    last one and says why: ``slow`` (come back with the cursor), ``ended``, ``revoked`` or ``shutdown``.
    """
    named = await anyio.to_thread.run_sync(serving.run, caller, run_id)
    serving.streams.require_room()
    followed = named.followed
    span = followed.span(named.run)
    start = _cursor(last_event_id) if last_event_id else after
    begins = followed.cursor if start is None else max(start, span.after)
    batches = serving.streams.follow(followed.journal, begins, Wanted.of(types, codon), _PROTOCOL, until=span.until)
    allowed = partial(_still_allowed, serving, request)
    return _Sse(_messages(batches, allowed), serving)


class _Sse(StreamingResponse):
    """Gives a client up that accepts nothing for too long."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncGenerator[bytes, None], serving: Serving) -> None:
        super().__init__(content, headers={"X-Accel-Buffering": "no"})
        self._messages = content
        self._serving = serving

    async def stream_response(self, send: Send) -> None:
        async def limited(message: Message) -> None:
            await within(self._serving.clock, SEND_S, partial(send, message))

        async with aclosing(self._messages):
            try:
                await super().stream_response(limited)
            except TimeoutError:
                self._serving.streams.slow[_PROTOCOL] += 1
                _LOG.info("a client that took nothing for %g s was given up", SEND_S)


async def _messages(batches: AsyncGenerator[Batch, None], allowed: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    yield f"retry: {_RETRY_MS}\n\n".encode()
    async with aclosing(batches):
        async for batch in batches:
            if not allowed():
                yield _note(Note("closed", 0, "revoked"))
                return
            yield b"".join(
                _note(item) if isinstance(item, Note) else _event(item.cursor, encoded(item)) for item in batch
            )


def _event(cursor: int, data: bytes) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (cursor, data)


def _note(note: Note) -> bytes:
    if note.kind == "at":  # without data only the id is kept by the client
        return b"id: %d\n\n" % note.cursor
    data = orjson.dumps({"reason": note.reason, "cursor": note.cursor})
    keeps = b"" if note.reason == "revoked" else b"id: %d\n" % note.cursor
    return b"event: %b\n%bdata: %b\n\n" % (note.kind.encode(), keeps, data)


def _still_allowed(serving: Serving, request: Request) -> bool:
    caller = serving.door.known(request.headers)
    return caller is not None and caller.reads_runs


def _cursor(written: str) -> int:
    if not written.isascii() or not written.isdecimal() or not int(written[:20]) <= LAST_CURSOR:
        raise UsageError(
            f"Last-Event-ID {written[:40]!r} is no cursor", hint="it is the id of a message of this stream"
        )
    return int(written[:20])
