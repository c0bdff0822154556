"""Structured output on the wire: each provider's own JSON-schema mode, and nothing where there is none."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.support.model_server import Answer, ModelServer, model_server

from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Message, ModelInfo, ModelRequest
from hankwatch.llm.litellm import LitellmClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}, "count": {"type": "integer", "minimum": 0}},
    "required": ["verdict"],
    "additionalProperties": False,
}
ANSWER = '{"verdict": "fine"}'


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(default=Answer(ANSWER)) as server:
        yield server


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[LitellmClient]:
    root = server.url.removesuffix("/v1")
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    bases = {"OPENAI": server.url, "ACME": server.url, "MISTRAL": server.url, "ANTHROPIC": root, "GEMINI": server.url}
    client = LitellmClient(ModelCatalog({**keys, **{f"{name}_API_BASE": url for name, url in bases.items()}}))
    await client.prepare()
    yield client
    await client.aclose()


async def _sent(client: LitellmClient, server: ModelServer, model: str, **fields: Any) -> dict[str, Any]:
    fields = {"json_schema": SCHEMA, "schema_name": "verdict", "schema_description": "how it went", **fields}
    reply = await client.complete(ModelRequest(model, (Message("user", "how was it?"),), **fields))
    assert json.loads(reply.text) == {"verdict": "fine"}
    [body] = server.bodies
    return body


async def test_openai_gets_a_response_format(client: LitellmClient, server: ModelServer) -> None:
    body = await _sent(client, server, "openai/gpt-5-mini")
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "description": "how it went", "schema": SCHEMA},
    }


async def test_anthropic_gets_an_output_format(client: LitellmClient, server: ModelServer) -> None:
    reply = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    content = [{"type": "text", "text": ANSWER}]
    server.script.append(Answer(body=json.dumps({**reply, "content": content, "usage": usage}).encode()))
    body = await _sent(client, server, "anthropic/claude-haiku-4-5")
    assert body["output_format"]["type"] == "json_schema"
    assert body["output_format"]["schema"]["properties"]["verdict"] == {"type": "string"}
    assert body["output_format"]["schema"]["required"] == ["verdict"]
    assert "structured-outputs" in server.headers[0]["anthropic-beta"]
    assert "tools" not in body


@pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class")  # at litellm's first call of Gemini
async def test_gemini_gets_a_response_schema(client: LitellmClient, server: ModelServer) -> None:
    candidate = {"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    server.script.append(Answer(body=json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()))
    body = await _sent(client, server, "google/gemini-2.5-flash")
    assert body["generationConfig"]["response_mime_type"] == "application/json"
    assert body["generationConfig"]["response_json_schema"] == SCHEMA


@pytest.mark.parametrize("model", ["acme/new-1", "openai/gpt-4", "mistral/mistral-large-latest"])
async def test_a_model_without_the_mode_gets_the_messages_alone(
    model: str, client: LitellmClient, server: ModelServer
) -> None:
    info = client.check(model)
    assert isinstance(info, ModelInfo)
    assert not info.enforces(SCHEMA)
    body = await _sent(client, server, model)
    assert set(body) == {"model", "messages", "temperature", "max_tokens"}


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"enum": ["fine"]}, {}])
async def test_a_schema_that_is_not_of_an_object_is_not_sent(
    schema: dict[str, Any], client: LitellmClient, server: ModelServer
) -> None:
    info = client.check("openai/gpt-5-mini")
    assert isinstance(info, ModelInfo)
    assert info.supports_schema
    assert not info.enforces(schema)
    assert "response_format" not in await _sent(client, server, "openai/gpt-5-mini", json_schema=schema)


@pytest.mark.parametrize(
    ("name", "sent"), [(None, "answer"), ("", "answer"), ("my verdict!", "my_verdict_"), ("x" * 100, "x" * 64)]
)
async def test_a_name_fits_what_providers_allow(
    name: str | None, sent: str, client: LitellmClient, server: ModelServer
) -> None:
    body = await _sent(client, server, "openai/gpt-5-mini", schema_name=name, schema_description=None)
    assert body["response_format"]["json_schema"] == {"name": sent, "schema": SCHEMA}
