"""Who answers a call, when it may go out, and how long it may take (spec sentinels 5, 7)."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.remotes import ScriptedRemote

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import IdSource
from hankwatch.llm import CallLog, Message, ModelInfo, ModelReply, ModelRequest, ModelRouter, Unavailable
from hankwatch.testing import Answer, after, failure, hang


class Bench:
    """A router over a scripted remote in virtual time, with its log in a folder."""

    def __init__(self, folder: Path, answers: Any = "ok", *, max_concurrent_calls: int = 8, **secrets: str) -> None:
        self.clock = VirtualClock()
        self.remote = ScriptedRemote(answers, clock=self.clock)
        self.log_file = folder / "sentinels" / "calls.jsonl"
        self.log_failures: list[OSError] = []
        redactor = Redactor(secrets)
        self.router = ModelRouter(
            {},
            redactor=redactor,
            clock=self.clock,
            call_log=CallLog(self.log_file, redactor=redactor, on_failure=self.log_failures.append),
            max_concurrent_calls=max_concurrent_calls,
            ids=IdSource(seed=1),
            remote=self.remote,
        )
        self.ended: list[tuple[str, float, str]] = []
        """(prompt, second, outcome) of each call, in the order in which they ended."""

    async def call(self, prompt: str, *, timeout_s: float = 60.0, max_retries: int = 0, **fields: Any) -> None:
        try:
            request = ask(prompt, timeout_s=timeout_s, max_retries=max_retries, **fields)
            outcome = (await self.router.complete(request)).text
        except ModelCallFailed as failed:
            outcome = failed.reason
        self.ended.append((prompt, self.clock.monotonic(), outcome))

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_file.read_text().splitlines()]


def ask(prompt: str, *, model: str = "acme/one", **fields: Any) -> ModelRequest:
    return ModelRequest(model, (Message("user", prompt),), **fields)


async def test_calls_beyond_the_limit_wait_their_turn_in_order(tmp_path: Path) -> None:
    bench = Bench(tmp_path, after(10, "ok"), max_concurrent_calls=2)
    async with anyio.create_task_group() as tasks:
        for prompt in "abcde":
            tasks.start_soon(bench.call, prompt)
        await bench.clock.advance(10)
        statistics = bench.router.statistics()
        assert (statistics.taken, statistics.waiting) == (2, 1)
        await bench.clock.advance(20)
    assert [(prompt, second) for prompt, second, _ in bench.ended] == [
        ("a", 10),
        ("b", 10),
        ("c", 20),
        ("d", 20),
        ("e", 30),
    ]
    assert bench.remote.peak == 2


async def test_the_time_limit_starts_with_the_slot(tmp_path: Path) -> None:
    bench = Bench(tmp_path, after(10, "ok"), max_concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        for prompt in "abc":
            tasks.start_soon(lambda prompt: bench.call(prompt, timeout_s=11), prompt)
        await bench.clock.advance(30)
    assert [outcome for *_, outcome in bench.ended] == ["ok", "ok", "ok"]


async def test_a_hung_call_holds_its_own_slot_until_its_limit_and_no_other(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Answer:
        return hang() if request.messages[0].content == "stuck" else after(1, "ok")

    bench = Bench(tmp_path, answer, max_concurrent_calls=2)
    async with anyio.create_task_group() as tasks:
        for prompt in ("stuck", "a", "b", "c"):
            tasks.start_soon(lambda prompt: bench.call(prompt, timeout_s=5), prompt)
        await bench.clock.advance(5)
        assert bench.remote.on_the_wire == 0
    assert bench.ended == [("a", 1, "ok"), ("b", 2, "ok"), ("c", 3, "ok"), ("stuck", 5, "no reply within 5 s")]
    assert bench.router.statistics().taken == 0


async def test_no_call_takes_more_than_the_total_limit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hang())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: bench.call("a", timeout_s=1_000))
        await bench.clock.advance(300)
    assert bench.ended == [("a", 300, "no reply within 300 s")]


async def test_a_model_without_a_price_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, ModelReply("worth keeping", 1, 1, None))
    replies = [await bench.router.complete(ask("?", model=model)) for model in ("acme/one", "acme/one", "acme/two")]
    assert [(reply.text, reply.cost_usd) for reply in replies] == [("worth keeping", None)] * 3
    assert [record.getMessage().split(" is not")[0] for record in caplog.records] == [
        "the price of acme/one",
        "the price of acme/two",
    ]


async def test_a_cancelled_call_gives_its_slot_back_and_is_logged(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hang(), max_concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call, "a")
        await bench.clock.advance(2)
        tasks.cancel_scope.cancel()
    assert bench.router.statistics().taken == 0
    [line] = bench.lines()
    assert line["error"]["reason"] == "cancelled before it ended"
    assert [attempt["outcome"] for attempt in line["attempts"]] == ["cancelled before it ended"]
    assert line["durationMs"] == 2_000


async def test_builtin_models_answer_while_every_slot_is_taken(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hang(), max_concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call, "stuck")
        await anyio.wait_all_tasks_blocked()
        await bench.call("hello", model="builtin/echo")
        tasks.cancel_scope.cancel()
    assert bench.ended == [("hello", 0, "hello")]


async def test_an_id_without_a_slash_fails_at_its_first_call(tmp_path: Path) -> None:
    router = ModelRouter({}, redactor=Redactor(), clock=VirtualClock())
    assert isinstance(router.check("haiku"), ModelInfo)
    with pytest.raises(ModelCallFailed) as failed:
        await router.complete(ask("?", model="haiku"))
    assert failed.value.reason == "No LLM provider available"


async def test_a_refused_model_fails_with_the_reason_of_its_check() -> None:
    router = ModelRouter({}, redactor=Redactor(), clock=VirtualClock())
    refused = router.check("openai/gpt-5-mini")
    assert isinstance(refused, Unavailable)
    with pytest.raises(ModelCallFailed) as failed:
        await router.complete(ask("?", model="openai/gpt-5-mini"))
    assert failed.value.reason == refused.reason


async def test_a_call_becomes_one_line_of_the_log(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [after(1.5, ModelReply("fine", 12, 3, None, "length"))])
    request = ask("how is it?", temperature=1, labels={"sentinelId": "narrator", "codonId": "fix", "triggerNumber": 4})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.router.complete, request)
        await bench.clock.advance(2)
    [line] = bench.lines()
    assert list(line) == [
        "callId",
        "digest",
        "model",
        "sentinelId",
        "codonId",
        "triggerNumber",
        "request",
        "reply",
        "tokens",
        "costUsd",
        "attempts",
        "startedAt",
        "durationMs",
    ]
    assert line["model"] == "acme/one"
    assert line["request"] == {
        "messages": [{"role": "user", "content": "how is it?"}],
        "temperature": 1.0,
        "maxOutputTokens": 8192,
    }
    assert line["reply"] == {"text": "fine", "finishReason": "length"}
    assert line["tokens"] == {"input": 12, "output": 3}
    assert line["costUsd"] is None
    assert (line["startedAt"], line["durationMs"]) == ("2000-01-01T00:00:00.000Z", 1_500)
    assert line["attempts"] == [{"startedAt": line["startedAt"], "durationMs": 1_500, "outcome": "reply"}]


async def test_the_reply_names_its_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    reply = await bench.router.complete(ask("?"))
    assert reply.call_id == bench.lines()[0]["callId"]


async def test_a_failed_call_is_logged_with_its_reason(tmp_path: Path) -> None:
    bench = Bench(tmp_path, failure("status 503: busy", retriable=True, status=503))
    await bench.call("?")
    [line] = bench.lines()
    assert line["error"] == {"reason": "status 503: busy", "retriable": True, "status": 503}
    assert line["tokens"] is None
    [attempt] = line["attempts"]
    assert (attempt["outcome"], attempt["status"]) == ("status 503: busy", 503)


async def test_a_secret_is_neither_sent_nor_logged(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "your key is hunter2-hunter2", ACME_API_KEY="hunter2-hunter2")
    reply = await bench.router.complete(ask("my key is hunter2-hunter2"))
    assert "hunter2" not in bench.remote.requests[0].messages[0].content
    assert "hunter2" not in bench.log_file.read_text()
    assert "hunter2" in reply.text  # what is written of it is redacted where it is written


async def test_a_log_that_cannot_be_written_does_not_lose_the_reply(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.log_file.mkdir(parents=True)
    assert (await bench.router.complete(ask("?"))).text == "ok"
    assert len(bench.log_failures) == 1


async def test_a_reply_is_made_valid_unicode(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "half a \ud83d pair")
    assert (await bench.router.complete(ask("?"))).text == "half a � pair"
    assert bench.lines()[0]["reply"]["text"] == "half a � pair"


@pytest.mark.parametrize(("models", "prepared"), [(["builtin/digest"], 0), ([], 0), (["builtin/echo", "acme/one"], 1)])
async def test_only_a_provider_model_is_warmed_up(models: list[str], prepared: int, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.router.warm_up(models)
    assert bench.remote.prepared == prepared


async def test_closing_closes_the_remote(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.router.aclose()
    assert bench.remote.closed
