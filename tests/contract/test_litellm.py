"""Providers through litellm, against a real HTTP server: what is sent, and what becomes of what comes back."""

import json
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from tests.support.model_server import Answer, ModelServer, model_server

from hankwatch.core.errors import ModelCallFailed
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Message, ModelReply, ModelRequest
from hankwatch.llm.litellm import LitellmClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

REQUEST = ModelRequest("openai/gpt-5-mini", (Message("system", "be brief"), Message("user", "say ok")))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[LitellmClient]:
    env = {
        "OPENAI_API_KEY": "of-the-agent",
        "HANKWEAVE_SENTINEL_OPENAI_API_KEY": "of-the-sentinels",
        "OPENAI_API_BASE": server.url,
        "ACME_API_BASE": server.url,
        "ANTHROPIC_API_KEY": "anthropic-key",
        "ANTHROPIC_API_BASE": server.url.removesuffix("/v1"),
        "GEMINI_API_KEY": "gemini-key",
        "GEMINI_API_BASE": server.url,
    }
    client = LitellmClient(ModelCatalog(env))
    await client.prepare()
    yield client
    await client.aclose()


async def _failure(client: LitellmClient, request: ModelRequest = REQUEST) -> ModelCallFailed:
    with pytest.raises(ModelCallFailed) as failed:
        await client.complete(request)
    return failed.value


async def test_a_request_carries_the_messages_the_limits_and_the_sentinels_key(
    client: LitellmClient, server: ModelServer
) -> None:
    reply = await client.complete(
        ModelRequest("acme/new-1", REQUEST.messages, temperature=0.5, max_output_tokens=77, events=({"secret": 1},))
    )
    assert reply == ModelReply("ok", 1000, 100, cost_usd=None)
    await client.complete(REQUEST)
    [acme, openai] = server.bodies
    assert acme == {
        "model": "new-1",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "say ok"}],
        "temperature": 0.5,
        "max_tokens": 77,
    }
    assert openai["model"] == "gpt-5-mini"
    assert server.headers[1]["authorization"] == "Bearer of-the-sentinels"


async def test_the_cost_comes_from_the_price_list(client: LitellmClient) -> None:
    reply = await client.complete(REQUEST)
    assert reply.cost_usd == pytest.approx(1000 * 0.25e-6 + 100 * 2e-6)


async def test_a_price_of_another_provider_is_not_used(client: LitellmClient) -> None:
    reply = await client.complete(ModelRequest("acme/gpt-5-mini", REQUEST.messages))
    assert reply.cost_usd is None


async def test_anthropic_is_spoken_to_in_its_own_dialect_and_cached_tokens_are_priced(
    client: LitellmClient, server: ModelServer
) -> None:
    usage = {"input_tokens": 1000, "cache_read_input_tokens": 500, "output_tokens": 100}
    reply = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "stop_reason": "max_tokens",
    }
    content = [{"type": "text", "text": "so far"}]
    server.script.append(Answer(body=json.dumps({**reply, "content": content, "usage": usage}).encode()))
    got = await client.complete(ModelRequest("anthropic/claude-haiku-4-5", REQUEST.messages))
    assert (got.text, got.truncated, got.input_tokens, got.output_tokens) == ("so far", True, 1500, 100)
    assert got.cost_usd == pytest.approx(1000 * 1e-6 + 500 * 0.1e-6 + 100 * 5e-6)
    assert (server.paths, server.headers[0]["x-api-key"]) == (["/v1/messages"], "anthropic-key")


@pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class")  # at litellm's first call of Gemini
async def test_google_is_reached_at_the_gemini_api(client: LitellmClient, server: ModelServer) -> None:
    candidate = {"content": {"role": "model", "parts": [{"text": "hey"}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
    server.script.append(Answer(body=json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()))
    got = await client.complete(ModelRequest("google/gemini-2.5-flash", REQUEST.messages))
    assert (got.text, got.input_tokens, got.output_tokens) == ("hey", 1000, 100)
    assert got.cost_usd == pytest.approx(1000 * 0.3e-6 + 100 * 2.5e-6)
    assert server.paths == ["/v1/models/gemini-2.5-flash:generateContent"]
    assert server.headers[0]["x-goog-api-key"] == "gemini-key"


async def test_openai_cached_and_reasoning_tokens_are_priced(client: LitellmClient, server: ModelServer) -> None:
    usage = {
        "prompt_tokens": 1000,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens": 300,
        "completion_tokens_details": {"reasoning_tokens": 200},
        "total_tokens": 1300,
    }
    choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini"}
    server.script.append(Answer(body=json.dumps({**reply, "choices": [choice], "usage": usage}).encode()))
    got = await client.complete(REQUEST)
    assert (got.input_tokens, got.output_tokens) == (1000, 300)
    assert got.cost_usd == pytest.approx(600 * 0.25e-6 + 400 * 0.025e-6 + 300 * 2e-6)


async def test_anthropic_tokens_written_to_the_cache_are_priced(client: LitellmClient, server: ModelServer) -> None:
    usage = {"input_tokens": 1000, "cache_creation_input_tokens": 500, "output_tokens": 100}
    reply = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    content = [{"type": "text", "text": "ok"}]
    server.script.append(Answer(body=json.dumps({**reply, "content": content, "usage": usage}).encode()))
    got = await client.complete(ModelRequest("anthropic/claude-haiku-4-5", REQUEST.messages))
    assert got.cost_usd == pytest.approx(1000 * 1e-6 + 500 * 1.25e-6 + 100 * 5e-6)


@pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class")  # at litellm's first call of Gemini
async def test_gemini_cached_and_reasoning_tokens_are_priced(client: LitellmClient, server: ModelServer) -> None:
    candidate = {"content": {"role": "model", "parts": [{"text": "hey"}]}, "finishReason": "STOP", "index": 0}
    usage = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 400,
        "candidatesTokenCount": 100,
        "thoughtsTokenCount": 200,
        "totalTokenCount": 1300,
    }
    server.script.append(Answer(body=json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()))
    got = await client.complete(ModelRequest("google/gemini-2.5-flash", REQUEST.messages))
    assert (got.input_tokens, got.output_tokens) == (1000, 300)
    assert got.cost_usd == pytest.approx(600 * 0.3e-6 + 400 * 0.03e-6 + 300 * 2.5e-6)


async def test_an_unpriced_model_keeps_its_reply(client: LitellmClient) -> None:
    reply = await client.complete(ModelRequest("openai/new-1", REQUEST.messages))
    assert (reply.text, reply.cost_usd) == ("ok", None)


async def test_a_reply_cut_at_its_limit_is_marked(client: LitellmClient, server: ModelServer) -> None:
    server.script.append(Answer("half a", finish_reason="length"))
    reply = await client.complete(REQUEST)
    assert (reply.text, reply.truncated) == ("half a", True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(None), "empty reply (finish reason: stop)"),
        (Answer(" \n"), "empty reply (finish reason: stop)"),
        (Answer("", finish_reason="length"), "empty reply (finish reason: length)"),
        (Answer("some", finish_reason="content_filter"), "filtered reply (finish reason: content_filter)"),
    ],
)
async def test_an_empty_or_filtered_reply_is_a_failure_that_cost_something(
    answer: Answer, reason: str, client: LitellmClient, server: ModelServer
) -> None:
    server.script.append(answer)
    failed = await _failure(client)
    assert (failed.reason, failed.retriable) == (reason, False)
    assert failed.cost_usd == pytest.approx(0.00045)


@pytest.mark.parametrize(("status", "retriable"), [(400, False), (401, False), (404, False), (429, True), (500, True)])
async def test_one_call_is_one_request_whatever_comes_back(
    status: int, *, retriable: bool, client: LitellmClient, server: ModelServer
) -> None:
    server.default = Answer("no such luck", status=status)
    failed = await _failure(client)
    assert server.request_count == 1
    assert (failed.status, failed.retriable, failed.cost_usd) == (status, retriable, 0.0)
    assert "no such luck" in failed.reason


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"choices": []}', b'{"choices": [{}]}'])
async def test_a_reply_that_is_none_is_a_failure(body: bytes, client: LitellmClient, server: ModelServer) -> None:
    server.script.append(Answer(body=body))
    await _failure(client)
    assert server.request_count == 1


async def test_a_provider_that_never_answers_is_given_up_after_one_attempt(
    client: LitellmClient, server: ModelServer
) -> None:
    server.default = Answer(hang=True)
    failed = await _failure(client, ModelRequest(REQUEST.model, REQUEST.messages, timeout_s=0.2))
    assert (failed.reason, failed.retriable, failed.cost_usd) == ("no reply within 0.2 s", True, None)
    assert server.request_count == 1


async def test_a_provider_that_is_not_there_is_unreachable() -> None:
    client = LitellmClient(ModelCatalog({"ACME_API_BASE": "http://127.0.0.1:9/v1"}))
    failed = await _failure(client, ModelRequest("acme/new-1", REQUEST.messages))
    await client.aclose()
    assert (failed.reason, failed.retriable) == ("the provider cannot be reached", True)


@pytest.mark.parametrize("model", ["openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "google/gemini-2.5-flash"])
async def test_a_provider_that_hangs_up_is_asked_once_and_may_have_charged(
    model: str, client: LitellmClient, server: ModelServer
) -> None:
    server.default = Answer(drop=True)
    failed = await _failure(client, ModelRequest(model, REQUEST.messages))
    assert failed.reason == "the provider closed the connection without an answer"
    assert (server.request_count, failed.retriable, failed.cost_usd) == (1, True, None)


@pytest.mark.parametrize("model", ["openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "google/gemini-2.5-flash"])
async def test_an_error_is_told_in_the_providers_words(model: str, client: LitellmClient, server: ModelServer) -> None:
    server.default = Answer("we are closed", status=500)
    assert (await _failure(client, ModelRequest(model, REQUEST.messages))).reason == "status 500: we are closed"


async def test_a_refusal_is_quoted(client: LitellmClient, server: ModelServer) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I will not"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    server.script.append(Answer(body=json.dumps(reply).encode()))
    failed = await _failure(client)
    assert (failed.reason, failed.retriable) == ("refused reply (I will not)", False)


async def test_a_refusal_of_anthropic_is_filtered(client: LitellmClient, server: ModelServer) -> None:
    reply = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "refusal"}
    usage = {"input_tokens": 10, "output_tokens": 1}
    content = [{"type": "text", "text": "I can"}]
    server.script.append(Answer(body=json.dumps({**reply, "content": content, "usage": usage}).encode()))
    failed = await _failure(client, ModelRequest("anthropic/claude-haiku-4-5", REQUEST.messages))
    assert failed.reason == "filtered reply (finish reason: content_filter)"


@pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class")  # at litellm's first call of Gemini
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"candidates": [{"finishReason": "SAFETY", "index": 0}]}, "filtered reply (finish reason: content_filter)"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "filtered reply (finish reason: content_filter)"),
        (
            {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]},
            "empty reply (finish reason: length)",
        ),
    ],
)
async def test_what_gemini_keeps_back_is_a_failure_with_its_reason(
    body: dict[str, object], reason: str, client: LitellmClient, server: ModelServer
) -> None:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}
    server.script.append(Answer(body=json.dumps({**body, "usageMetadata": usage}).encode()))
    failed = await _failure(client, ModelRequest("google/gemini-2.5-flash", REQUEST.messages))
    assert (failed.reason, failed.retriable) == (reason, False)
    assert failed.cost_usd


async def test_cancellation_ends_a_hung_request(client: LitellmClient, server: ModelServer) -> None:
    server.default = Answer(hang=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.complete, REQUEST)
        with anyio.fail_after(10):
            await anyio.to_thread.run_sync(server.arrived.wait, 10)
        tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught


async def test_a_closed_client_opens_new_connections(client: LitellmClient) -> None:
    await client.complete(REQUEST)
    await client.aclose()
    assert (await client.complete(REQUEST)).text == "ok"


async def test_nothing_is_printed(
    client: LitellmClient, server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script.append(Answer("no", status=503))
    await _failure(client)
    await client.complete(REQUEST)
    assert capfd.readouterr() == ("", "")


async def test_a_broken_package_fails_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("no module named tokenizers")

    monkeypatch.setattr("hankwatch.llm.litellm._import", broken)
    failed = await _failure(LitellmClient(ModelCatalog({"OPENAI_API_KEY": "k"})))
    assert (failed.reason, failed.retriable) == ("the package cannot be used: no module named tokenizers", False)


async def test_a_closed_client_leaves_no_connection(client: LitellmClient, server: ModelServer) -> None:
    await client.complete(REQUEST)
    assert not server.hung_up.is_set()
    await client.aclose()
    assert await anyio.to_thread.run_sync(server.hung_up.wait, 10)
