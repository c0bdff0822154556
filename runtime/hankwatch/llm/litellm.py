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

from hankwatch.core.contain import contain
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.text import shorten
from hankwatch.llm.catalog import Endpoint, ModelCatalog
from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable

_BEFORE_IMPORT: Final = {
    # Without these it asks the network for its price list and headers while it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    # Its aiohttp sessions leak when the event loop changes.
    "DISABLE_AIOHTTP_TRANSPORT": "True",
}
_RETRIABLE_BELOW_500: Final = frozenset({408, 409, 425, 429})
_OUT_OF_MONEY: Final = ("insufficient_quota", "exceeded your current quota", "billing")
_TYPED_DICT_WARNING: Final = "Items? .* on TypedDict class"
_UNREACHABLE: Final = ("Connection error.", "All connection attempts failed")
_NOISE: Final = re.compile(r"^(?:litellm\.\w+: |\w+Error: |\w+Exception - )+|\s*Handle with `litellm\.\w+`\.?$")


class LitellmClient:
    """Calls the providers that the catalogue knows. Safe from many tasks of one event loop."""

    def __init__(self, catalog: ModelCatalog) -> None:
        self._catalog = catalog
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
        failures: list[ModelCallFailed] = []
        with contain(lambda error: failures.append(classify(request.model, error, timeout_s=request.timeout_s))):
            return _reply(request.model, endpoint, await self._send(endpoint, request))
        raise failures[0]

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
        )


def classify(model: str, error: Exception, *, timeout_s: float) -> ModelCallFailed:
    """The failure of a call in our terms: by status and text, because the classes say little.

    litellm reports a refused connection as status 500, overload (529) under its base class, and a
    time-out as 408.
    """
    if isinstance(error, ModelCallFailed):
        return error
    status: int | None = getattr(error, "status_code", None)
    text = str(error).strip()
    message = shorten(_NOISE.sub("", text.partition("\n")[0]) or type(error).__name__, 500)
    if status == 408:
        # The provider may have answered, and charged, after we hung up.
        return ModelCallFailed(model, f"no reply within {timeout_s:g} s", retriable=True, cost_usd=None)
    if any(phrase in text for phrase in _UNREACHABLE):
        return ModelCallFailed(model, "the provider cannot be reached", retriable=True)
    if status is None:
        return ModelCallFailed(model, f"unusable reply: {type(error).__name__}: {message}", retriable=False)
    out_of_money = status == 429 and any(phrase in text.lower() for phrase in _OUT_OF_MONEY)
    retriable = (status in _RETRIABLE_BELOW_500 or status >= 500) and not out_of_money
    return ModelCallFailed(model, f"status {status}: {message}", retriable=retriable, status=status)


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


def _reply(model: str, endpoint: Endpoint, response: Any) -> ModelReply:
    price = response._hidden_params.get("response_cost")
    # A price of 0 is how the registry says that it knows none.
    cost_usd = float(price) if price and endpoint.priced else None
    choice = response.choices[0] if response.choices else None
    text = choice.message.content if choice else None
    finish_reason = choice.finish_reason if choice else "no choices"
    if finish_reason == "content_filter" or not (text and text.strip()):
        what = "filtered" if finish_reason == "content_filter" else "empty"
        reason = f"{what} reply (finish reason: {finish_reason})"
        raise ModelCallFailed(model, reason, retriable=False, cost_usd=cost_usd)
    return ModelReply(
        text,
        input_tokens=response.usage.prompt_tokens,
        output_tokens=response.usage.completion_tokens,
        cost_usd=cost_usd,
        finish_reason=finish_reason,
    )
