"""Models of real providers, through litellm; the only module that imports it.

One ``complete`` is one request on the wire: litellm's and the provider SDK's own retries are off, so
whoever wants another attempt makes another call.
"""

import asyncio
import importlib
import json
import logging
import re
import ssl
import warnings
from collections.abc import Mapping
from contextvars import copy_context
from functools import cache
from types import ModuleType
from typing import Any, Final

import anyio
import anyio.to_thread

from hankwatch.core.clock import Clock, SystemClock
from hankwatch.core.contain import contain
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.text import shorten
from hankwatch.llm.catalog import Endpoint, ModelCatalog
from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.llm.exchange import Exchange, exchange
from hankwatch.llm.failures import classify
from hankwatch.llm.surroundings import give_back, withhold
from hankwatch.llm.usage import believable, believable_cost

_LOG = logging.getLogger(__name__)
_TYPED_DICT_WARNING: Final = "Items? .* on TypedDict class"
_REHEARSAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai/none": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "none",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "anthropic/none": {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "none",
        "content": [{"type": "text", "text": "pong"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini/none": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "pong"}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
}
"""What a provider of each dialect answers."""


class LitellmClient:
    """Calls the providers that the catalogue knows. Safe from many tasks of one event loop.

    Args:
        catalog: Which models there are and how each is reached.
        clock: Whose wall time a provider's ``Retry-After`` date is compared with.
    """

    def __init__(self, catalog: ModelCatalog, *, clock: Clock | None = None) -> None:
        self._catalog = catalog
        self._clock = clock or SystemClock()
        self._module: ModuleType | None = None
        self._importing = anyio.Lock()

    def check(self, model: str) -> ModelInfo | Unavailable:
        return self._catalog.check(model)

    async def prepare(self) -> None:
        """Import litellm in a thread (seconds, ~190 MB); at once when that is done already.

        Raises:
            ModelCallFailed: The package cannot be imported or used.
        """
        if self._module is not None:
            return
        failures: list[Exception] = []
        async with self._importing:
            if self._module is not None:
                return
            withhold()
            try:
                with contain(failures.append):
                    self._module = await anyio.to_thread.run_sync(_import, abandon_on_cancel=True)
            finally:
                if self._module is None:
                    give_back()
        if failures:
            reason = f"the package cannot be used: {failures[0]}"
            raise ModelCallFailed("litellm", reason, retriable=False) from failures[0]

    async def complete(self, request: ModelRequest) -> ModelReply:
        endpoint = self._catalog.endpoint(request.model)
        await self.prepare()
        failures: list[Exception] = []
        met = Exchange()
        token = exchange.set(met)
        try:
            with contain(failures.append):
                return self._reply(request.model, endpoint, await self._send(endpoint, request), met)
        finally:
            exchange.reset(token)
        raise classify(
            request.model, failures[0], timeout_s=request.timeout_s, now=self._clock.now(), answered=met.answered
        )

    async def aclose(self) -> None:
        """Close the connections of every client that litellm keeps in this process."""
        if self._module is None:
            return
        module, self._module = self._module, None
        try:
            await _close_connections(module)
        finally:
            give_back()

    async def _send(self, endpoint: Endpoint, request: ModelRequest) -> Any:
        assert self._module is not None
        return await self._module.acompletion(
            model=endpoint.model,
            messages=[{"role": message.role, "content": message.content} for message in request.messages],
            temperature=request.temperature,
            max_tokens=request.max_output_tokens,
            timeout=request.timeout_s,
            max_retries=0,
            num_retries=0,
            api_key=endpoint.api_key,
            api_base=endpoint.api_base,
            # Some models take no temperature; the request is still worth making.
            drop_params=True,
            **_response_format(self._catalog.info(request.model), request),
        )

    def _reply(self, model: str, endpoint: Endpoint, response: Any, met: Exchange) -> ModelReply:
        used = _usage(response) if met.believable else None
        cost_usd = self._cost_usd(endpoint, response) if used else None
        choice = response.choices[0] if response.choices else None
        text = choice.message.content if choice else None
        finish_reason = choice.finish_reason if choice else "no choices"
        refusal = getattr(choice.message, "refusal", None) if choice else None
        if finish_reason == "content_filter" or refusal or not (text and text.strip()):
            what = "refused" if refusal else "filtered" if finish_reason == "content_filter" else "empty"
            detail = shorten(refusal, 200) if refusal else f"finish reason: {finish_reason}"
            raise ModelCallFailed(model, f"{what} reply ({detail})", retriable=False, cost_usd=cost_usd)
        input_tokens, output_tokens = used or (None, None)
        return ModelReply(text, input_tokens, output_tokens, cost_usd, finish_reason=finish_reason)

    def _cost_usd(self, endpoint: Endpoint, response: Any) -> float | None:
        """By the price of the model that was asked for; what a reply calls itself is the provider's own business."""
        assert self._module is not None
        cost: object = None
        # A reply without a price is still a reply.
        with contain(lambda error: _LOG.debug("no cost of %s: %s", endpoint.model, error)):
            if endpoint.priced:
                cost = self._module.completion_cost(response, model=endpoint.model, base_model=endpoint.model)
        return believable_cost(cost)


def _import() -> ModuleType:
    # Its own hold: whoever waits for this thread may give up on it.
    withhold()
    try:
        import litellm

        # All three would write to the terminal that the run's own output goes to.
        warnings.filterwarnings("ignore", message=_TYPED_DICT_WARNING)
        litellm.suppress_debug_info = True
        logging.getLogger("LiteLLM").setLevel(logging.ERROR)
        module: ModuleType = litellm
        _make_ready(module)
        return module
    finally:
        give_back()


@cache
def _make_ready(module: ModuleType) -> None:
    _guard()
    copy_context().run(asyncio.run, _rehearse(module))


def _guard() -> None:
    """Every connection that litellm opens is a ``WireTransport``, through a proxy or not."""
    from hankwatch.llm.wire import WireTransport

    handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
    # A version that builds its clients elsewhere must not be used unguarded.
    if not (hasattr(handlers, "AsyncHTTPTransport") and hasattr(handlers.AsyncHTTPHandler, "create_async_transport")):
        raise ImportError("this version of litellm opens connections in a way that is not known")

    def transport(
        ssl_context: ssl.SSLContext | None = None, ssl_verify: bool | None = None, cert: Any = None, **_: Any
    ) -> WireTransport:
        return WireTransport(verify=ssl_verify is not False if ssl_context is None else ssl_context, cert=cert)

    handlers.AsyncHTTPTransport = WireTransport
    handlers.AsyncHTTPHandler.create_async_transport = staticmethod(transport)


async def _rehearse(module: ModuleType) -> None:
    """One call of each dialect that is sent nowhere: what the first call loads would stop the event loop for long."""
    for model, reply in _REHEARSAL.items():
        exchange.set(Exchange(canned=json.dumps(reply).encode()))
        await module.acompletion(
            model=model,
            messages=[{"role": "user", "content": "ping"}],
            api_key="none",
            api_base="http://127.0.0.1:9",
            max_tokens=1,
            max_retries=0,
            num_retries=0,
        )
    await _close_connections(module)


async def _close_connections(module: ModuleType) -> None:
    cleanup = importlib.import_module("litellm.llms.custom_httpx.async_client_cleanup")
    await cleanup.close_litellm_async_clients()
    # It would hand out the closed clients again.
    module.in_memory_llm_clients_cache.flush_cache()


def _response_format(info: ModelInfo, request: ModelRequest) -> dict[str, Any]:
    if request.json_schema is None or not info.enforces(request.json_schema):
        return {}
    described = {"description": request.schema_description} if request.schema_description else {}
    # Not strict: a provider's strict mode refuses most of what people write.
    schema = {"name": _schema_name(request.schema_name), **described, "schema": dict(request.json_schema)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _schema_name(name: str | None) -> str:
    """Providers allow letters, digits, ``_`` and ``-``, 64 of them."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name or "")[:64] or "answer"


def _usage(response: Any) -> tuple[int, int] | None:
    """Input and output tokens; None when the reply does not say: no prompt has none."""
    used: Any = getattr(response, "usage", None)
    prompt: Any = getattr(used, "prompt_tokens", None)
    completion: Any = getattr(used, "completion_tokens", None)
    return (int(prompt), int(completion)) if prompt and believable(prompt) and believable(completion) else None
