"""When a call is made again, how long it waits before, and what that costs (spec sentinels 7)."""

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.remotes import ScriptedRemote

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import Message, ModelReply, ModelRequest, ModelRouter
from hankwatch.llm.retries import BACK_OFF_S, RETRY_AFTER_CEILING_S, back_off_s
from hankwatch.testing import Answer, after, failure, hang

BUSY = failure("status 503: busy", retriable=True, status=503)
LIMITED = failure("status 429: slow down", retriable=True, status=429, retry_after_s=7)


class Bench:
    """A router without jitter over a scripted remote in virtual time."""

    def __init__(
        self, answers: Any, *, max_concurrent_calls: int = 8, random: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.clock = VirtualClock()
        self.sent_at_s: list[tuple[float, str]] = []
        """(second, prompt) of each request on the wire."""
        self.ended: list[tuple[str, float, ModelReply | ModelCallFailed]] = []
        bench = self

        class Remote(ScriptedRemote):
            async def complete(self, request: ModelRequest) -> ModelReply:
                bench.sent_at_s.append((bench.clock.monotonic(), request.messages[0].content))
                return await super().complete(request)

        self.remote = Remote(answers, clock=self.clock)
        self.router = ModelRouter(
            {},
            redactor=Redactor(),
            clock=self.clock,
            max_concurrent_calls=max_concurrent_calls,
            remote=self.remote,
            random=random,
        )

    async def call(self, prompt: str = "?", *, model: str = "acme/one", **fields: Any) -> None:
        try:
            outcome: ModelReply | ModelCallFailed = await self.router.complete(
                ModelRequest(model, (Message("user", prompt),), **fields)
            )
        except ModelCallFailed as failed:
            outcome = failed
        self.ended.append((prompt, self.clock.monotonic(), outcome))

    async def one(self, **fields: Any) -> ModelReply | ModelCallFailed:
        """The outcome of one call, however long it takes."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: self.call(**fields))
            await self.clock.advance(1_000)
        return self.ended[-1][2]

    def seconds(self) -> list[float]:
        return [second for second, _ in self.sent_at_s]


@pytest.mark.parametrize("max_retries", [0, 1, 2, 5])
async def test_a_call_that_always_fails_is_tried_once_and_then_as_often_as_allowed(max_retries: int) -> None:
    bench = Bench(BUSY)
    failed = await bench.one(max_retries=max_retries)
    assert isinstance(failed, ModelCallFailed)
    assert len(bench.sent_at_s) == failed.attempts == max_retries + 1
    assert (failed.retriable, failed.status) == (True, 503)
    assert failed.reason == (
        "status 503: busy" if max_retries == 0 else f"status 503: busy (attempt {max_retries + 1})"
    )


async def test_what_stays_wrong_is_not_tried_again() -> None:
    bench = Bench(failure("status 401: who are you?", status=401))
    await bench.one(max_retries=5)
    assert bench.seconds() == [0]


async def test_the_wait_doubles_with_each_failure() -> None:
    bench = Bench(BUSY)
    await bench.one(max_retries=5)
    assert bench.seconds() == [0, 1, 3, 7, 15, 31]


async def test_a_reply_says_how_many_attempts_it_took() -> None:
    bench = Bench([BUSY, BUSY, "at last"])
    reply = await bench.one()
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.attempts) == ("at last", 3)


@given(failures=st.integers(1, 5), asked=st.none() | st.floats(0, 1e6), random=st.floats(0, 1, exclude_max=True))
def test_a_wait_is_never_shorter_than_back_off_or_what_was_asked_for_and_little_longer(
    failures: int, asked: float | None, random: float
) -> None:
    least = max(BACK_OFF_S * 2 ** (failures - 1), min(asked or 0, RETRY_AFTER_CEILING_S))
    assert least <= back_off_s(failures, asked, random) <= least * 1.25


async def test_a_provider_gets_the_time_it_asks_for() -> None:
    bench = Bench([LIMITED, "ok"])
    await bench.one()
    assert bench.seconds() == [0, 7]


async def test_a_provider_that_asks_for_an_hour_is_asked_again_after_the_ceiling() -> None:
    bench = Bench([failure("closed", retriable=True, status=503, retry_after_s=3_600), "ok"])
    await bench.one()
    assert bench.seconds() == [0, RETRY_AFTER_CEILING_S]


async def test_the_others_of_that_provider_hold_back_and_those_of_another_do_not() -> None:
    bench = Bench([LIMITED, "ok", "ok", "ok"], random=lambda: 0.5)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call, "first")
        await bench.clock.advance(1)
        tasks.start_soon(bench.call, "held")
        tasks.start_soon(lambda: bench.call("free", model="other/one"))
        await bench.clock.advance(1)
        assert bench.router.statistics().held_providers == ("acme",)
        assert bench.router.statistics().taken == 0
        await bench.clock.advance(20)
    assert sorted(bench.sent_at_s) == [(0, "first"), (1, "free"), (7.875, "first"), (7.875, "held")]
    assert bench.router.statistics().held_providers == ()


async def test_a_call_that_waits_for_a_slot_learns_of_a_hold_back() -> None:
    def answer(request: ModelRequest) -> Answer:
        return after(1, LIMITED) if request.max_retries == 0 else "ok"

    bench = Bench(answer, max_concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: bench.call("limited", max_retries=0))
        await bench.clock.advance(0.5)
        for prompt in "ab":
            tasks.start_soon(bench.call, prompt)
        await bench.clock.advance(20)
    assert bench.sent_at_s == [(0, "limited"), (8, "a"), (8, "b")]


async def test_a_full_queue_that_is_not_a_limit_holds_nobody_back() -> None:
    bench = Bench([BUSY, "ok", "ok"])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call, "first")
        await bench.clock.advance(0.5)
        tasks.start_soon(bench.call, "second")
        await bench.clock.advance(2)
    assert bench.sent_at_s == [(0, "first"), (0.5, "second"), (1, "first")]


async def test_no_slot_is_held_during_a_wait_and_a_retry_keeps_its_place() -> None:
    def answer(request: ModelRequest) -> Answer:
        return next(firsts) if request.messages[0].content == "first" else after(10, "ok")

    firsts: Iterator[Answer] = iter([BUSY, "ok"])
    bench = Bench(answer, max_concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        for prompt in ("first", "second", "third"):
            tasks.start_soon(bench.call, prompt)
        await bench.clock.advance(100)
    assert bench.sent_at_s == [(0, "first"), (0, "second"), (10, "first"), (10, "third")]


async def test_all_attempts_and_waits_together_keep_the_total_limit() -> None:
    bench = Bench(hang())
    failed = await bench.one(timeout_s=100, max_retries=5)
    assert isinstance(failed, ModelCallFailed)
    assert bench.seconds() == [0, 101, 203]
    assert bench.ended[0][1] == 300
    assert failed.reason == "no reply within 97 s (attempt 3)"


async def test_a_wait_that_would_go_past_the_total_limit_is_not_begun() -> None:
    bench = Bench([after(290, failure("busy", retriable=True, status=503, retry_after_s=60))])
    await bench.one(timeout_s=300)
    assert bench.ended[0][1] == 290


async def test_a_retry_that_gets_no_slot_within_the_limit_is_given_up() -> None:
    def answer(request: ModelRequest) -> Answer:
        return after(1, BUSY) if request.messages[0].content == "unlucky" else hang()

    bench = Bench(answer, max_concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call, "unlucky")
        tasks.start_soon(lambda: bench.call("hog", timeout_s=300, max_retries=0))
        await bench.clock.advance(310)
    assert bench.ended[0][:2] == ("unlucky", 300)
    assert str(bench.ended[0][2]) == "scripted: status 503: busy"


async def test_the_cost_of_failed_attempts_counts() -> None:
    paid = ModelCallFailed("acme/one", "garbled", retriable=True, cost_usd=0.5)
    reply = await Bench([paid, ModelReply("ok", 1, 1, 0.25)]).one()
    assert (reply.cost_usd, reply.cost_complete) == (0.75, True)
    failed = await Bench(paid).one()
    assert (failed.cost_usd, failed.cost_complete) == (1.5, True)


async def test_an_attempt_of_unknown_cost_makes_the_rest_a_lower_bound() -> None:
    reply = await Bench([hang(), ModelReply("ok", 1, 1, 0.25)]).one()
    assert (reply.cost_usd, reply.cost_complete) == (0.25, False)


async def test_a_cost_of_which_nothing_is_known_is_unknown() -> None:
    for answers in ([hang(), BUSY, BUSY], [BUSY, ModelReply("ok", 1, 1, None)]):
        assert (await Bench(answers).one()).cost_usd is None


async def test_a_call_cancelled_in_its_back_off_ends_at_once() -> None:
    bench = Bench(LIMITED)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call)
        await bench.clock.advance(3)
        tasks.cancel_scope.cancel()
    assert bench.seconds() == [0]
    assert bench.router.statistics().waiting == 0
