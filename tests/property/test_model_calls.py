"""Laws of the model router, its log and the digest, whatever the calls and events are."""

import contextlib
import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.remotes import ScriptedRemote

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import CallLog, CallLogClient, Message, ModelClient, ModelReply, ModelRequest, ModelRouter
from hankwatch.llm.call import digest_of
from hankwatch.llm.digest import digest
from hankwatch.testing import Answer, after, failure, hang


def _json(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.text() | numbers,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )


any_json = _json(st.integers() | st.floats())
journaled_json = _json(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False))


@dataclass(frozen=True)
class Plan:
    """One call: when it is made, how long the provider takes (None: for ever), when the caller gives up."""

    at_s: int
    takes_s: int | None
    fails: bool
    limit_s: int
    gives_up_s: int | None


plans = st.lists(
    st.builds(
        Plan,
        at_s=st.integers(0, 10),
        takes_s=st.none() | st.integers(0, 12),
        fails=st.booleans(),
        limit_s=st.integers(1, 10),
        gives_up_s=st.none() | st.integers(1, 20),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(plans=plans, slots=st.integers(1, 4))
async def test_slots_are_bounded_fair_and_given_back_and_every_call_is_logged_once(
    plans: list[Plan], slots: int
) -> None:
    clock = VirtualClock()
    on_wire: dict[int, tuple[float, float]] = {}

    def answer(request: ModelRequest) -> Answer:
        plan = plans[int(request.labels["triggerNumber"])]
        ending: Answer = failure("no") if plan.fails else "ok"
        return hang() if plan.takes_s is None else after(plan.takes_s, ending)

    class Wire(ScriptedRemote):
        async def complete(self, request: ModelRequest) -> ModelReply:
            began = clock.monotonic()
            try:
                return await super().complete(request)
            finally:
                on_wire[int(request.labels["triggerNumber"])] = (began, clock.monotonic())

    remote = Wire(answer, clock=clock)
    asked: list[int] = []

    async def call(router: ModelRouter, number: int, plan: Plan) -> None:
        await clock.sleep(plan.at_s)
        asked.append(number)
        request = ModelRequest(
            "acme/one",
            (Message("user", "?"),),
            timeout_s=plan.limit_s,
            max_retries=0,
            labels={"triggerNumber": number},
        )
        with anyio.CancelScope() as scope:
            if plan.gives_up_s is not None:
                givers.start_soon(give_up, scope, plan.gives_up_s)
            with contextlib.suppress(ModelCallFailed):
                await router.complete(request)

    async def give_up(scope: anyio.CancelScope, after_s: int) -> None:
        await clock.sleep(after_s)
        scope.cancel()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        failures: list[OSError] = []
        log = CallLog(path, redactor=Redactor(), on_failure=failures.append)
        router = ModelRouter(
            {}, redactor=Redactor(), clock=clock, call_log=log, max_concurrent_calls=slots, remote=remote
        )
        async with anyio.create_task_group() as givers, anyio.create_task_group() as callers:
            for number, plan in enumerate(plans):
                callers.start_soon(call, router, number, plan)
            await clock.advance(300)
        lines = [json.loads(line) for line in path.read_text().splitlines()]

    assert remote.peak <= slots
    assert remote.on_the_wire == router.statistics().taken == 0
    assert Counter(line["triggerNumber"] for line in lines) == Counter(range(len(plans)))
    assert not failures
    started = [int(request.labels["triggerNumber"]) for request in remote.requests]
    assert started == [number for number in asked if number in on_wire]
    for number, (began, ended) in on_wire.items():
        assert ended - began <= plans[number].limit_s


@dataclass(frozen=True)
class Behaviour:
    """What a provider does with one request."""

    takes_s: float
    status: int
    asks_s: float | None


behaviours = st.builds(
    Behaviour,
    takes_s=st.sampled_from([0, 1, 20, 61, 120]),
    status=st.sampled_from([200, 200, 401, 429, 503]),
    asks_s=st.none() | st.sampled_from([0.0, 0.5, 30.0, 500.0]),
)


@settings(max_examples=60)
@given(
    script=st.lists(behaviours, max_size=20),
    calls=st.lists(
        st.tuples(st.sampled_from(["a/one", "a/two", "b/one"]), st.integers(0, 5), st.sampled_from([30, 60, 400])),
        min_size=1,
        max_size=5,
    ),
    slots=st.integers(1, 3),
    random=st.randoms(use_true_random=False),
)
async def test_whatever_providers_do_a_call_keeps_its_number_of_requests_and_its_time(
    script: list[Behaviour], calls: list[tuple[str, int, int]], slots: int, random: Random
) -> None:
    clock = VirtualClock()
    on_wire: dict[int, list[tuple[float, float]]] = {number: [] for number in range(len(calls))}
    behaviour = iter(script)

    def answer(request: ModelRequest) -> Answer:
        does = next(behaviour, Behaviour(1, 200, None))
        failing = failure("no", retriable=does.status > 401, status=does.status, retry_after_s=does.asks_s)
        return after(does.takes_s, ModelReply("ok", 1, 1, 0.5) if does.status == 200 else failing)

    class Wire(ScriptedRemote):
        async def complete(self, request: ModelRequest) -> ModelReply:
            began = clock.monotonic()
            try:
                return await super().complete(request)
            finally:
                on_wire[int(request.labels["triggerNumber"])].append((began, clock.monotonic()))

    outcomes: dict[int, ModelReply | ModelCallFailed] = {}
    remote = Wire(answer, clock=clock)
    router = ModelRouter(
        {}, redactor=Redactor(), clock=clock, max_concurrent_calls=slots, remote=remote, random=random.random
    )

    async def call(number: int, model: str, max_retries: int, timeout_s: int) -> None:
        request = ModelRequest(
            model,
            (Message("user", "?"),),
            max_retries=max_retries,
            timeout_s=timeout_s,
            labels={"triggerNumber": number},
        )
        try:
            outcomes[number] = await router.complete(request)
        except ModelCallFailed as failed:
            outcomes[number] = failed

    async with anyio.create_task_group() as tasks:
        for number, (model, max_retries, timeout_s) in enumerate(calls):
            tasks.start_soon(call, number, model, max_retries, timeout_s)
        await clock.advance(5_000)

    assert remote.peak <= slots
    for number, (_, max_retries, timeout_s) in enumerate(calls):
        requests = on_wire[number]
        assert len(requests) == outcomes[number].attempts <= max_retries + 1
        assert all(ended - began <= timeout_s + 1e-6 for began, ended in requests)
        assert all(later[0] - earlier[1] >= 1 - 1e-6 for earlier, later in pairwise(requests))
        assert requests[-1][1] - requests[0][0] <= 300 + 1e-6


@given(
    data=st.lists(st.tuples(st.sampled_from(["tool.result", "token.usage", "codon.completed", "x"]), journaled_json))
)
def test_the_digest_takes_any_payload_and_says_the_same_twice(data: list[tuple[str, Any]]) -> None:
    keys = ("toolName", "isError", "result", "codonId", "totalCost", "inputTokens", "failureReason", "success", "cost")
    events = [
        {"type": kind, "timestamp": "2026-01-01T00:00:00.000Z", "data": dict.fromkeys(keys, value)}
        for kind, value in data
    ]
    assert digest(events) == digest(events)


@given(text=st.text(st.characters()), schema=st.dictionaries(st.text(), any_json, max_size=4))
def test_a_request_of_any_text_has_one_digest_and_one_line(text: str, schema: dict[str, Any]) -> None:
    request = ModelRequest("acme/one", (Message("user", text),), json_schema=schema)
    turned = ModelRequest("acme/one", (Message("user", text),), json_schema=dict(reversed(schema.items())))
    assert digest_of(request) == digest_of(turned)


@settings(max_examples=50)
@given(
    calls=st.lists(
        st.tuples(st.sampled_from(["?", "??", "é\ud800"]), st.sampled_from("abc"), st.none() | st.text(min_size=1)),
        max_size=12,
    ),
    order=st.randoms(),
)
async def test_a_log_answers_as_the_provider_did_whoever_asks_first(
    calls: list[tuple[str, str, str | None]], order: Random
) -> None:
    """None as an answer is a failure. The trigger number tells equal calls of one sentinel apart."""
    clock = VirtualClock()
    redactor = Redactor()
    requests = [
        ModelRequest("acme/one", (Message("user", prompt),), labels={"sentinelId": sentinel, "triggerNumber": number})
        for number, (prompt, sentinel, _) in enumerate(calls)
    ]
    script = [failure("no") if answer is None else answer for *_, answer in calls]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        log = CallLog(path, redactor=redactor, on_failure=lambda error: pytest.fail(str(error)))
        remote = ScriptedRemote(script, clock=clock)
        router = ModelRouter({}, redactor=redactor, clock=clock, call_log=log, remote=remote)
        recorded = {number: await _outcome(router, request) for number, request in enumerate(requests)}
        path.touch()
        client = CallLogClient(path, redactor=redactor)
    numbers = list(recorded)
    order.shuffle(numbers)
    assert {number: await _outcome(client, requests[number]) for number in numbers} == recorded


async def _outcome(client: ModelClient, request: ModelRequest) -> ModelReply | str:
    try:
        return await client.complete(request)
    except ModelCallFailed as failed:
        return failed.reason
