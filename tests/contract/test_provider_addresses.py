"""Where requests go when no base URL says otherwise; the client's transport lets respx stand in for the providers."""

import importlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import respx

from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Message, ModelRequest
from hankwatch.llm.litellm import LitellmClient
from hankwatch.llm.registry import read_registry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

OPENAI_REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5-mini",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
}
ANTHROPIC_REPLY = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-4-5",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 1},
}
GEMINI_REPLY = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11},
}


@pytest.mark.parametrize("model", ["groq/m", "mistral/m", "xai/m", "cerebras/m"])
async def test_an_address_of_ours_is_the_one_that_the_library_has(model: str, client: LitellmClient) -> None:
    provider = model.partition("/")[0]
    library: Any = importlib.import_module("litellm")
    _, _, _, address = library.get_llm_provider(model)
    listed = next(name for name in read_registry() if name.startswith(f"{provider}/"))
    assert ModelCatalog({f"{provider.upper()}_API_KEY": "k"}).endpoint(listed).api_base == address


@pytest.fixture
async def client() -> AsyncIterator[LitellmClient]:
    keys = {f"HANKWEAVE_SENTINEL_{name}_API_KEY": f"{name.lower()}-key" for name in ("OPENAI", "ANTHROPIC", "GEMINI")}
    client = LitellmClient(ModelCatalog(keys))
    await client.prepare()
    yield client
    await client.aclose()


@pytest.mark.parametrize(
    ("model", "url", "header", "key", "reply"),
    [
        (
            "openai/gpt-5-mini",
            "https://api.openai.com/v1/chat/completions",
            "authorization",
            "Bearer openai-key",
            OPENAI_REPLY,
        ),
        (
            "anthropic/claude-haiku-4-5",
            "https://api.anthropic.com/v1/messages",
            "x-api-key",
            "anthropic-key",
            ANTHROPIC_REPLY,
        ),
        (
            "google/gemini-2.5-flash",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
            "x-goog-api-key",
            "gemini-key",
            GEMINI_REPLY,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class")  # at litellm's first call of Gemini
async def test_a_request_goes_to_the_providers_own_address_with_the_sentinels_key(
    model: str, url: str, header: str, key: str, reply: dict[str, object], client: LitellmClient
) -> None:
    with respx.mock(assert_all_called=True) as providers:
        route = providers.post(url).mock(httpx.Response(200, json=reply))
        got = await client.complete(ModelRequest(model, (Message("user", "say ok"),)))
    assert (got.text, got.input_tokens, got.output_tokens) == ("ok", 10, 1)
    [call] = route.calls
    assert call.request.headers[header] == key
    assert "say ok" in json.dumps(json.loads(call.request.content))
