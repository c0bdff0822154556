"""What fires would cost: counted by our own tokens, priced by the registry (spec cli, ``try``)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.recordings import START

from hankwatch.bench.attempt import Fire
from hankwatch.bench.estimate import REPLY_TOKENS, SAMPLE_SIZE, Estimate, FireSample, estimate, known_at_once
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.core.clock import SystemClock
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.source import SentinelSource, read_config_file
from hankwatch.sentinels.strategies import Batch, Cause
from hankwatch.sentinels.tokens import TOKENS_PER_MESSAGE, estimate_tokens
from hankwatch.testing import make_event

MODEL = "anthropic/claude-haiku-4-5"
CATALOG = ModelCatalog({})


def sentinel(folder: Path, **config: Any) -> SentinelSource:
    whole = {
        "id": "s",
        "name": "S",
        "model": MODEL,
        "userPromptText": "{{ it.events[0].data.message }}",
        "trigger": {"type": "event", "on": ["info"]},
        "execution": {"strategy": "immediate"},
        **config,
    }
    (folder / "s.json").write_text(json.dumps(whole))
    source = read_config_file(folder / "s.json", Diagnostics())
    assert source.config is not None, source.faults
    return source


def sampled(*messages: str) -> FireSample:
    sample = FireSample()
    for number, message in enumerate(messages, 1):
        event = make_event("info", number, message=message)
        sample.note(Fire(number, Batch((event,), Cause.MATCH, number), CodonScope("c", "c", "C", None, START)))
    return sample


async def estimated(source: SentinelSource, *messages: str) -> Estimate:
    async with Sandbox(clock=SystemClock()) as sandbox:
        return await estimate(sampled(*messages), source, CATALOG, sandbox)


def cost(input_tokens: float, output_tokens: float) -> float:
    price = CATALOG.price(MODEL)
    assert price is not None
    return (input_tokens * price.input_usd + output_tokens * price.output_usd) / 1_000_000


def test_what_needs_no_prompt_is_known_at_once() -> None:
    assert known_at_once("builtin/echo", CATALOG) == Estimate(0.0)
    assert known_at_once("anthropic/of-the-future", CATALOG) == Estimate(None)
    assert known_at_once("no-provider", CATALOG) == Estimate(None)
    assert known_at_once(MODEL, CATALOG) is None


async def test_few_fires_are_all_rendered_and_counted(tmp_path: Path) -> None:
    said = ["one", "two words", "three words here"]
    found = await estimated(sentinel(tmp_path), *said)
    tokens = sum(estimate_tokens(text) + TOKENS_PER_MESSAGE for text in said)
    assert (found.input_tokens, found.rendered, found.failed) == (tokens, 3, 0)
    assert found.cost_usd == pytest.approx(cost(tokens, 3 * REPLY_TOKENS))
    assert found.most_usd == pytest.approx(cost(tokens, 3 * 8_192))


async def test_of_many_fires_a_sample_stands_for_all_by_the_size_of_their_events(tmp_path: Path) -> None:
    # Large ones are rare: a plain mean of a sample would be far off.
    said = ["word " * (2_000 if number % 40 == 7 else 10) for number in range(400)]
    found = await estimated(sentinel(tmp_path), *said)
    tokens = sum(estimate_tokens(text) + TOKENS_PER_MESSAGE for text in said)
    assert found.rendered == SAMPLE_SIZE
    assert found.input_tokens == pytest.approx(tokens, rel=0.02)


async def test_a_reply_is_not_taken_to_be_longer_than_allowed(tmp_path: Path) -> None:
    found = await estimated(sentinel(tmp_path, llmParams={"maxOutputTokens": 50}), "x")
    assert (found.reply_tokens, found.cost_usd) == (50, found.most_usd)


async def test_a_conversation_is_sent_again_with_each_fire(tmp_path: Path) -> None:
    alone = await estimated(sentinel(tmp_path, systemPromptText="Be brief."), "hi", "hi", "hi")
    remembers = {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 1}}
    talking = sentinel(tmp_path, systemPromptText="Be brief.", conversational=remembers)
    turn = estimate_tokens("hi") + TOKENS_PER_MESSAGE + REPLY_TOKENS
    assert (await estimated(talking, "hi", "hi", "hi")).input_tokens == alone.input_tokens + 2 * turn


async def test_a_conversation_is_not_taken_to_grow_over_its_bound(tmp_path: Path) -> None:
    remembers = {"trimmingStrategy": {"type": "maxTokens", "maxTokens": 400}}
    talking = sentinel(tmp_path, systemPromptText="Be brief.", conversational=remembers)
    assert (await estimated(talking, *["hi"] * 10)).input_tokens <= 10 * 400


async def test_instructions_for_a_structured_answer_are_counted(tmp_path: Path) -> None:
    plain = await estimated(sentinel(tmp_path), "x")
    words = {"output": "enum", "enumValues": ["good", "bad"]}
    told = await estimated(sentinel(tmp_path, model="mistral/mistral-large-latest", structuredOutput=words), "x")
    assert told.input_tokens > plain.input_tokens + 10


async def test_a_prompt_that_fails_costs_nothing(tmp_path: Path) -> None:
    source = sentinel(tmp_path, userPromptText="{{ it.events[0].data.message + 1 if it.trigger.number == 1 else 'x' }}")
    found = await estimated(source, "a", "b")
    assert (found.failed, found.input_tokens) == (1, estimate_tokens("x") + TOKENS_PER_MESSAGE)


async def test_no_fires_cost_nothing_and_only_failing_prompts_say_nothing(tmp_path: Path) -> None:
    assert (await estimated(sentinel(tmp_path))).cost_usd == 0
    assert (await estimated(sentinel(tmp_path, userPromptText="{{ it.no.such }}"), "a")).cost_usd is None
