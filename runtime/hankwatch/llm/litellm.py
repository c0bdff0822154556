"""Models of real providers, through litellm; the only module that imports it.

One ``complete`` is one request on the wire: litellm's and the provider SDK's own retries are off, so
whoever wants another attempt makes another call.
"""

import importlib
import logging
import os
import re
import warnings
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
from hankwatch.llm.failures import classify

_BEFORE_IMPORT: Final = {
    # Without these it asks the network for its price list and headers while it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    # Its aiohttp sessions leak when the event loop changes.
    "DISABLE_AIOHTTP_TRANSPORT": "True",
}
_TYPED_DICT_WARNING: Final = "Items? .* on TypedDict class"


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
        with contain(failures.append):
            async with self._importing:
                self._module = self._module or await anyio.to_thread.run_sync(_import, abandon_on_cancel=True)
        if failures:
            reason = f"the package cannot be used: {failures[0]}"
            raise ModelCallFailed("litellm", reason, retriable=False) from failures[0]

    async def complete(self, request: ModelRequest) -> ModelReply:
        endpoint = self._catalog.endpoint(request.model)
        await self.prepare()
        failures: list[Exception] = []
        with contain(failures.append):
            return _reply(request.model, endpoint, await self._send(endpoint, request))
        raise classify(request.model, failures[0], timeout_s=request.timeout_s, now=self._clock.now())

    async def aclose(self) -> None:
        """Close the connections of every client that litellm keeps in this process."""
        if self._module is None:
            return
        cleanup = importlib.import_module("litellm.llms.custom_httpx.async_client_cleanup")
        await cleanup.close_litellm_async_clients()
        # It would hand out the closed clients again.
        self._module.in_memory_llm_clients_cache.flush_cache()

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


def _import() -> ModuleType:
    for name, value in _BEFORE_IMPORT.items():
        os.environ.setdefault(name, value)
    import litellm

    # All three would write to the terminal that the run's own output goes to.
    warnings.filterwarnings("ignore", message=_TYPED_DICT_WARNING)
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    # What the first call loads would stop the event loop for 0.2 s; this one loads it here and sends nothing.
    ping = [{"role": "user", "content": "ping"}]
    litellm.completion(model="openai/none", messages=ping, mock_response="pong", api_key="none")
    module: ModuleType = litellm
    return module


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


def _reply(model: str, endpoint: Endpoint, response: Any) -> ModelReply:
    price = response._hidden_params.get("response_cost")
    # A price of 0 is how the registry says that it knows none.
    cost_usd = float(price) if price and endpoint.priced else None
    choice = response.choices[0] if response.choices else None
    text = choice.message.content if choice else None
    finish_reason = choice.finish_reason if choice else "no choices"
    refusal = getattr(choice.message, "refusal", None) if choice else None
    if finish_reason == "content_filter" or refusal or not (text and text.strip()):
        what = "refused" if refusal else "filtered" if finish_reason == "content_filter" else "empty"
        detail = shorten(refusal, 200) if refusal else f"finish reason: {finish_reason}"
        raise ModelCallFailed(model, f"{what} reply ({detail})", retriable=False, cost_usd=cost_usd)
    return ModelReply(
        text,
        input_tokens=response.usage.prompt_tokens,
        output_tokens=response.usage.completion_tokens,
        cost_usd=cost_usd,
        finish_reason=finish_reason,
    )
