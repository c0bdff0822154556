"""What every ModelClient promises, whoever answers."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from tests.support.model_server import Answer, model_server

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import (
    CallLog,
    CallLogClient,
    Message,
    ModelClient,
    ModelInfo,
    ModelReply,
    ModelRequest,
    ModelRouter,
    Unavailable,
)
from hankwatch.llm.builtin import BuiltinModels
from hankwatch.llm.call import Call
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.litellm import LitellmClient
from hankwatch.testing import ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


@dataclass(frozen=True)
class Candidate:
    """A client, a model it can call (whose reply to "say ok" is "say ok"), and one it cannot."""

    client: ModelClient
    known: str
    unknown: str


@pytest.fixture(params=["scripted", "builtin", "litellm", "router", "router-builtin", "call-log"])
async def candidate(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Candidate]:
    with model_server(default=Answer("say ok")) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": server.url}
        router = ModelRouter(env, redactor=Redactor(), clock=SystemClock())
        litellm = LitellmClient(ModelCatalog(env))
        yield {
            "scripted": Candidate(ScriptedModel("say ok", unavailable=["x/none"]), "x/any", "x/none"),
            "builtin": Candidate(BuiltinModels(), "builtin/echo", "builtin/none"),
            "litellm": Candidate(litellm, "openai/gpt-5-mini", "none/such"),
            "router": Candidate(router, "openai/gpt-5-mini", "none/such"),
            "router-builtin": Candidate(router, "builtin/echo", "builtin/none"),
            "call-log": Candidate(_recorded(tmp_path / "calls.jsonl"), "openai/gpt-5-mini", "builtin/none"),
        }[request.param]
        await router.aclose()
        await litellm.aclose()


def _recorded(path: Path) -> CallLogClient:
    """As many calls as any test here makes."""
    log = CallLog(path, redactor=Redactor(), on_failure=lambda error: pytest.fail(str(error)))
    for number in range(10):
        log.write(Call(str(number), _ask("openai/gpt-5-mini"), outcome=ModelReply("say ok", 2, 2, 0.001)))
    return CallLogClient(path, redactor=Redactor())


def _ask(model: str) -> ModelRequest:
    return ModelRequest(model, (Message("user", "say ok"),))


async def test_a_callable_model_has_a_provider(candidate: Candidate) -> None:
    info = candidate.client.check(candidate.known)
    assert isinstance(info, ModelInfo)
    assert info.model == candidate.known
    assert info.provider


async def test_a_refusal_says_why_and_what_to_do(candidate: Candidate) -> None:
    refusal = candidate.client.check(candidate.unknown)
    assert isinstance(refusal, Unavailable)
    assert refusal.model == candidate.unknown
    assert refusal.reason
    assert refusal.hint


async def test_a_reply_has_text_tokens_and_cost(candidate: Candidate) -> None:
    reply = await candidate.client.complete(_ask(candidate.known))
    assert reply.text == "say ok"
    assert reply.input_tokens
    assert reply.output_tokens
    assert reply.cost_usd is not None
    assert not reply.truncated


async def test_calling_what_check_refuses_fails_for_good(candidate: Candidate) -> None:
    with pytest.raises(ModelCallFailed) as failed:
        await candidate.client.complete(_ask(candidate.unknown))
    assert failed.value.model == candidate.unknown
    assert not failed.value.retriable


async def test_calls_may_overlap(candidate: Candidate) -> None:
    replies: list[str] = []

    async def call() -> None:
        replies.append((await candidate.client.complete(_ask(candidate.known))).text)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(call)
    assert replies == ["say ok"] * 10


async def test_a_cancelled_call_ends_at_once(candidate: Candidate) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await candidate.client.complete(_ask(candidate.known))
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
