"""A12, A13: how many requests a provider sees, and when, over real HTTP with virtual waits."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.model_server import Answer, ModelServer, model_server
from tests.support.wire import Wire

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import CallLog, Message, ModelReply, ModelRequest, ModelRouter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

OPENAI, ANTHROPIC, GEMINI = "openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "google/gemini-2.5-flash"
TICK_S = 0.5
"""The virtual clock's step while a request is under way, twice."""


class Bench:
    """A router over real HTTP whose waits take no time."""

    def __init__(self, server: ModelServer, wire: Wire, log: Path) -> None:
        self.server = server
        self.wire = wire
        self.log = log
        self.outcomes: list[ModelReply | ModelCallFailed] = []
        self.router = ModelRouter(
            {},
            redactor=Redactor(),
            clock=wire.clock,
            call_log=CallLog(log, redactor=Redactor(), on_failure=lambda error: pytest.fail(str(error))),
            max_concurrent_calls=2,
            remote=wire,
            random=lambda: 0.0,
        )

    async def call(self, model: str = OPENAI, **fields: Any) -> None:
        request = ModelRequest(model, (Message("user", "say ok"),), **fields)
        try:
            self.outcomes.append(await self.router.complete(request))
        except ModelCallFailed as failed:
            self.outcomes.append(failed)

    async def one(self, model: str = OPENAI, **fields: Any) -> ModelReply | ModelCallFailed:
        await self.wire.play(partial(self.call, model, **fields))
        return self.outcomes[-1]

    def waits_s(self) -> list[float]:
        """Virtual seconds between the requests."""
        seconds = [second for second, _ in self.wire.left_at_s]
        return [later - earlier for earlier, later in pairwise(seconds)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
async def bench(server: ModelServer, tmp_path: Path) -> AsyncIterator[Bench]:
    root = server.url.removesuffix("/v1")
    env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENAI_API_BASE": server.url}
    wire = Wire({**env, "ANTHROPIC_API_BASE": root, "GEMINI_API_BASE": server.url}, clock=VirtualClock())
    await wire.prepare()
    yield Bench(server, wire, tmp_path / "calls.jsonl")
    await wire.aclose()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC, GEMINI])
async def test_a_transient_failure_makes_one_request_more_for_each_retry(model: str, status: int, bench: Bench) -> None:
    bench.server.default = Answer("no", status=status)
    failed = await bench.one(model, max_retries=2)
    assert isinstance(failed, ModelCallFailed)
    assert bench.server.request_count == failed.attempts == 3
    assert failed.status == status


@pytest.mark.parametrize("max_retries", [0, 1, 5])
async def test_the_number_of_requests_is_the_number_asked_for(max_retries: int, bench: Bench) -> None:
    bench.server.default = Answer("no", status=500)
    await bench.one(max_retries=max_retries)
    assert bench.server.request_count == max_retries + 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC, GEMINI])
async def test_a_permanent_failure_is_one_request_even_when_it_speaks_of_rate_limits(
    model: str, status: int, bench: Bench
) -> None:
    bench.server.default = Answer("rate limit of your plan: try again in 634ms", status=status)
    failed = await bench.one(model, max_retries=5)
    assert isinstance(failed, ModelCallFailed)
    assert (bench.server.request_count, failed.retriable, failed.status) == (1, False, status)


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC, GEMINI])
async def test_two_failures_and_a_success(model: str, bench: Bench) -> None:
    bench.server.script += [Answer("no", status=503, headers={"Retry-After": "7"})] * 2
    bench.server.script.append(Answer(body=_reply(model)))
    reply = await bench.one(model)
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.attempts, bench.server.request_count) == ("ok", 3, 3)
    assert all(7 <= wait_s <= 7 + TICK_S for wait_s in bench.waits_s())


@pytest.mark.parametrize(
    ("headers", "text", "least_s"),
    [
        ({"Retry-After": "7"}, "no", 7),
        ({"Retry-After": "Sat, 01 Jan 2000 00:00:07 GMT"}, "no", 7),
        ({"retry-after-ms": "7250"}, "no", 7.25),
        ({}, "Rate limit reached. Please try again in 7634ms.", 7.634),
        ({}, "no", 1),
        ({"Retry-After": "3600"}, "no", 120),
    ],
)
@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC, GEMINI])
async def test_the_provider_is_left_alone_for_as_long_as_it_asks(
    model: str, headers: dict[str, str], text: str, least_s: float, bench: Bench
) -> None:
    bench.server.script += [Answer(text, status=429, headers=headers), Answer(body=_reply(model))]
    await bench.one(model)
    [wait_s] = bench.waits_s()
    assert least_s - TICK_S <= wait_s <= least_s + TICK_S
    assert bench.server.request_count == 2


async def test_other_sentinels_of_that_provider_hold_back_and_those_of_another_do_not(bench: Bench) -> None:
    bench.server.script.append(Answer("no", status=429, headers={"Retry-After": "7"}))
    await bench.one(max_retries=0)
    bench.server.script.append(Answer(body=_reply(ANTHROPIC)))
    began_s = bench.wire.clock.monotonic()
    await bench.wire.play(*[partial(bench.call, model) for model in (OPENAI, ANTHROPIC, OPENAI)])
    left = [(model, second - began_s) for second, model in bench.wire.left_at_s[1:]]
    assert [model for model, _ in left] == [ANTHROPIC, OPENAI, OPENAI]
    assert left[0][1] == 0
    assert min(second for _, second in left[1:]) >= 7 - TICK_S


async def test_a_hung_provider_is_given_up_and_asked_again(bench: Bench) -> None:
    bench.server.default = Answer(hang=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(bench.call, timeout_s=50, max_retries=1))
        for _ in range(2):
            await anyio.to_thread.run_sync(bench.server.arrived.wait, 10)
            bench.server.arrived.clear()
            await bench.wire.clock.advance(52)
    [failed] = bench.outcomes
    assert str(failed) == f"{OPENAI}: no reply within 50 s (attempt 2)"
    assert (bench.server.request_count, failed.cost_usd) == (2, None)


async def test_every_attempt_stands_in_the_call_log(bench: Bench) -> None:
    bench.server.script.append(Answer("busy", status=503, headers={"Retry-After": "7"}))
    await bench.one()
    [line] = [json.loads(line) for line in bench.log.read_text().splitlines()]
    failed, replied = line["attempts"]
    assert (failed["outcome"], failed["status"], failed["retryAfterS"]) == ("status 503: busy", 503, 7)
    assert replied["outcome"] == "reply"
    assert line["reply"]["text"] == "ok"
    assert line["costUsd"] == pytest.approx(0.00045)


def _reply(model: str) -> bytes | None:
    """A success in the dialect of the model's provider; None is the server's own."""
    text = [{"type": "text", "text": "ok"}]
    if model == ANTHROPIC:
        usage = {"input_tokens": 10, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        return json.dumps({**message, "content": text, "usage": usage}).encode()
    if model == GEMINI:
        candidate = {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}
        return json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()
    return None
