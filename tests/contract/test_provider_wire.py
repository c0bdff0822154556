"""What may come back from a provider, over real HTTP in its three dialects: one request, bounded, believed or not."""

import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from tests.support.model_server import Answer, ModelServer, model_server

from hankwatch.core.errors import ModelCallFailed
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Message, ModelReply, ModelRequest
from hankwatch.llm.litellm import LitellmClient
from hankwatch.llm.wire import MAX_REPLY_BYTES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

OPENAI, ANTHROPIC, GEMINI = "openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "google/gemini-2.5-flash"
DIALECTS = (OPENAI, ANTHROPIC, GEMINI)
USAGE: dict[str, tuple[str, dict[str, int]]] = {
    OPENAI: ("usage", {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}),
    ANTHROPIC: ("usage", {"input_tokens": 1000, "output_tokens": 100}),
    GEMINI: ("usageMetadata", {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}),
}
EVERY_DIALECT = pytest.mark.parametrize("model", DIALECTS)


def _body(model: str, text: str = "ok", *, named: str = "some-model") -> dict[str, Any]:
    key, usage = USAGE[model]
    message = {"role": "assistant", "content": text}
    dialects: dict[str, dict[str, Any]] = {
        OPENAI: {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": named,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        },
        ANTHROPIC: {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": named,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
        },
        GEMINI: {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
            "modelVersion": named,
        },
    }
    return {**dialects[model], key: usage}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[LitellmClient]:
    env = {f"{name}_API_KEY": "a-key" for name in ("OPENAI", "ANTHROPIC", "GEMINI")}
    bases = {f"{name}_API_BASE": server.url.removesuffix("/v1") for name in ("ANTHROPIC", "GEMINI")}
    client = LitellmClient(ModelCatalog({**env, **bases, "OPENAI_API_BASE": server.url}))
    await client.prepare()
    yield client
    await client.aclose()


async def _ask(client: LitellmClient, model: str) -> ModelReply:
    return await client.complete(ModelRequest(model, (Message("user", "say ok"),)))


async def _failure(client: LitellmClient, model: str) -> ModelCallFailed:
    with pytest.raises(ModelCallFailed) as failed:
        await _ask(client, model)
    return failed.value


@EVERY_DIALECT
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_nowhere_and_says_where_it_points(
    model: str, status: int, client: LitellmClient, server: ModelServer
) -> None:
    with model_server() as elsewhere:
        server.default = Answer("moved", status=status, headers={"Location": f"{elsewhere.url}/steal"})
        failed = await _failure(client, model)
        assert (elsewhere.request_count, server.request_count) == (0, 1)
        assert f"{elsewhere.url}/steal" in failed.reason
    assert (failed.retriable, failed.status, failed.cost_usd) == (False, status, 0.0)


@EVERY_DIALECT
@pytest.mark.parametrize(
    "bad", ["-5", "NaN", "Infinity", "-1e999", "1" + "0" * 20, '"many"', "true", "1.5", "[]", "{}"]
)
async def test_usage_that_cannot_be_is_unknown_and_the_answer_is_kept(
    model: str, bad: str, client: LitellmClient, server: ModelServer
) -> None:
    key, usage = USAGE[model]
    body = json.dumps({**_body(model), key: dict.fromkeys(usage, "?")}).replace('"?"', bad)
    server.script.append(Answer(body=body.encode()))
    assert await _ask(client, model) == ModelReply("ok", None, None, cost_usd=None)


@EVERY_DIALECT
@pytest.mark.parametrize("name", [0, 1])
async def test_one_absurd_count_makes_all_of_the_usage_unknown(
    model: str, name: int, client: LitellmClient, server: ModelServer
) -> None:
    key, usage = USAGE[model]
    body = {**_body(model), key: {**usage, list(usage)[name]: -1}}
    server.script.append(Answer(body=json.dumps(body).encode()))
    assert await _ask(client, model) == ModelReply("ok", None, None, cost_usd=None)


@EVERY_DIALECT
@pytest.mark.parametrize("stated", [None, [], {}, "much"])
async def test_a_reply_that_states_no_usage_is_kept(
    model: str, stated: object, client: LitellmClient, server: ModelServer
) -> None:
    server.script.append(Answer(body=json.dumps({**_body(model), USAGE[model][0]: stated}).encode()))
    assert await _ask(client, model) == ModelReply("ok", None, None, cost_usd=None)


@EVERY_DIALECT
async def test_the_price_is_the_asked_models_whatever_the_reply_calls_itself(
    model: str, client: LitellmClient, server: ModelServer
) -> None:
    server.script.append(Answer(body=json.dumps(_body(model)).encode()))
    server.script.append(Answer(body=json.dumps(_body(model, named="gpt-4")).encode()))
    plain, renamed = await _ask(client, model), await _ask(client, model)
    price = ModelCatalog({}).price(model)
    assert price is not None
    assert plain.cost_usd == renamed.cost_usd
    assert plain.cost_usd == pytest.approx((1000 * price.input_usd + 100 * price.output_usd) / 1e6)


@EVERY_DIALECT
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_reply_without_end_is_refused(
    model: str, encoding: str, client: LitellmClient, server: ModelServer
) -> None:
    body = json.dumps(_body(model, "x" * MAX_REPLY_BYTES)).encode()
    body = gzip.compress(body, 1) if encoding == "gzip" else body
    server.script.append(Answer(body=body, headers={"Content-Encoding": encoding}))
    failed = await _failure(client, model)
    assert (failed.reason, failed.retriable) == ("no usable reply: the reply is larger than 16 MiB", False)
    assert failed.cost_usd is None


@EVERY_DIALECT
async def test_a_compressed_reply_is_read(model: str, client: LitellmClient, server: ModelServer) -> None:
    body = gzip.compress(json.dumps(_body(model)).encode())
    server.script.append(Answer(body=body, headers={"Content-Encoding": "gzip"}))
    assert (await _ask(client, model)).text == "ok"


@EVERY_DIALECT
@pytest.mark.parametrize(("encoding", "body"), [("br", b"{}"), ("gzip", b"{}")])
async def test_a_reply_that_cannot_be_unpacked_is_a_failure(
    model: str, encoding: str, body: bytes, client: LitellmClient, server: ModelServer
) -> None:
    server.script.append(Answer(body=body, headers={"Content-Encoding": encoding}))
    assert (await _failure(client, model)).retriable


@EVERY_DIALECT
@pytest.mark.parametrize("body", [b"<html>hi</html>", b"", b"null", b"[]", b'"x"', b"\xff", b"{}", b'{"error": {}}'])
async def test_a_reply_of_the_wrong_shape_may_be_asked_for_again(
    model: str, body: bytes, client: LitellmClient, server: ModelServer
) -> None:
    server.default = Answer(body=body)
    failed = await _failure(client, model)
    assert (failed.retriable, failed.cost_usd, server.request_count) == (True, None, 1)
    assert failed.reason.startswith("no usable reply: ")


@EVERY_DIALECT
async def test_only_the_beginning_of_a_long_error_is_looked_at(
    model: str, client: LitellmClient, server: ModelServer
) -> None:
    page = b"<html>" + b"x" * 1_000_000
    server.default = Answer(status=502, body=page, headers={"Content-Type": "text/html"})
    async with anyio.create_task_group() as tasks:
        longest_s = [0.0]

        async def tick() -> None:
            while True:
                before_s = anyio.current_time()
                await anyio.sleep(0.01)
                longest_s[0] = max(longest_s[0], anyio.current_time() - before_s)

        tasks.start_soon(tick)
        failed = await _failure(client, model)
        tasks.cancel_scope.cancel()
    assert (failed.status, failed.retriable) == (502, True)
    assert len(failed.reason) < 600
    assert longest_s[0] < 2
