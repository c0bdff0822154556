"""The HTTP of provider calls, below the provider library: one request, one bounded JSON answer, from where it went.

The library and the providers' own clients each have their notions of redirects and sizes; what they send and get
passes through here, whichever they are.
"""

import json
import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

from hankwatch.core.text import shorten, strip_controls
from hankwatch.llm.exchange import MAX_ERROR_BYTES, Exchange, ReplyRefused, exchange
from hankwatch.llm.usage import without_absurd_counts

MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
"""Decoded. The longest answer a sentinel can ask for (100,000 tokens) is far below, escapes and all."""
_OWN_HEADERS: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})


class WireTransport(httpx.AsyncHTTPTransport):
    """Sends a request, follows nothing, and hands on what may be read of the answer.

    Raises ``ReplyRefused`` for a redirect, a reply that is too large, oddly encoded or no JSON object.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        met = exchange.get() or Exchange()
        if met.canned is not None:
            return httpx.Response(200, json=json.loads(met.canned))
        # What is asked for is what the bounded decoder below reads.
        request.headers["accept-encoding"] = "gzip"
        response = await super().handle_async_request(request)
        try:
            return await _taken(request, response, met)
        finally:
            await response.aclose()


async def _taken(request: httpx.Request, response: httpx.Response, met: Exchange) -> httpx.Response:
    status = response.status_code
    if 300 <= status < 400:
        target = shorten(strip_controls(response.headers.get("location", "nowhere")), 200)
        reason = f"status {status}: {request.url.host} points to {target}; redirects are not followed"
        raise ReplyRefused(reason, status=status, retriable=False, charged=False)
    good = 200 <= status < 300
    body = await _body(response, MAX_REPLY_BYTES if good else MAX_ERROR_BYTES, cut=not good)
    if good:
        met.answered = True
        body = _usable(body, response, met)
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _OWN_HEADERS]
    return httpx.Response(status, headers=headers, content=body, extensions=response.extensions)


async def _body(response: httpx.Response, limit: int, *, cut: bool) -> bytes:
    """The decoded body up to ``limit`` bytes; a longer one is cut or refused."""
    body = bytearray()
    async for part in _decoded(response, limit):
        body += part
        if len(body) > limit:
            if cut:
                break
            raise _unusable(response, f"the reply is larger than {limit // 1024 // 1024} MiB", retriable=False)
    return bytes(body[:limit])


async def _decoded(response: httpx.Response, limit: int) -> AsyncIterator[bytes]:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise _unusable(response, f"the reply is encoded as {encoding[:40]!r}, which was not asked for")
    decoder = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    assert isinstance(response.stream, httpx.AsyncByteStream)
    async for chunk in response.stream:
        # A few bytes can unpack to gigabytes: one byte beyond the limit is enough to tell.
        try:
            yield chunk if decoder is None else decoder.decompress(chunk, limit + 1)
        except zlib.error:
            raise _unusable(response, "the reply is not the gzip that it says") from None


def _usable(body: bytes, response: httpx.Response, met: Exchange) -> bytes:
    try:
        reply: Any = json.loads(body)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        start = shorten(strip_controls(body[:400].decode(errors="replace")).strip().partition("\n")[0], 100)
        raise _unusable(response, f"the reply is no JSON object: {start or 'nothing at all'}")
    cleaned, met.believable = without_absurd_counts(reply)
    return body if cleaned == reply else json.dumps(cleaned).encode()


def _unusable(response: httpx.Response, what: str, *, retriable: bool = True) -> ReplyRefused:
    status = response.status_code
    return ReplyRefused(f"no usable reply: {what}", status=status, retriable=retriable, charged=status < 300)
