"""Prompts over the model's context window: what is left out, in which order, and that it is said (spec sentinels 6)."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.sentinels import Desk, desk, scope, source

from hankwatch.events.run import Info
from hankwatch.llm.client import Message, ModelInfo, Unavailable
from hankwatch.sentinels.window import Shown, estimate_tokens, fitted, request_tokens
from hankwatch.testing import ScriptedModel

ALL = "{% for e in events %}{{ e.data.message }}|{% endfor %}{{ trigger.omitted }}"
OUTPUT_TOKENS = 100


class Small(ScriptedModel):
    """A model with a small window."""

    def __init__(self, context_tokens: int | None, answers: Any = "ok") -> None:
        super().__init__(answers)
        self._context_tokens = context_tokens

    def check(self, model: str) -> ModelInfo | Unavailable:
        return ModelInfo(model, provider="scripted", context_tokens=self._context_tokens)


def counting(count: int, prompt: str = ALL, **config: Any) -> Any:
    execution = {"strategy": "count", "threshold": count}
    return source(execution=execution, userPromptText=prompt, llmParams={"maxOutputTokens": OUTPUT_TOKENS}, **config)


def prompt(d: Desk, number: int = 0) -> str:
    assert isinstance(d.model, ScriptedModel)
    return d.model.requests[number].messages[-1].content


async def fire(d: Desk, count: int, length: int) -> None:
    for number in range(count):
        d.stream.emit(Info(message=f"{number}:" + "x" * length))
    await d.manager.settle()


async def test_a_prompt_that_fits_is_sent_as_it_is(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(100_000)) as d, d.manager.attach(scope(), [counting(5)]):
        await fire(d, 5, 300)
        assert prompt(d).endswith("|0")
        assert "omitted" not in d.said("output")[0]


async def test_without_a_known_window_nothing_is_left_out(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(None)) as d, d.manager.attach(scope(), [counting(100)]):
        await fire(d, 100, 3_000)
        assert len(prompt(d)) > 300_000


async def test_the_oldest_events_lose_their_bodies_first_and_the_prompt_says_so(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(1_000)) as d, d.manager.attach(scope(), [counting(10)]) as attached:
        await fire(d, 10, 300)
        assert prompt(d).startswith(
            "[Shortened to fit the model's context window: of 10 events the oldest 2 shown are without their long "
            "texts.]\n\n[302 characters left out]|[302 characters left out]|2:xxx"
        )
        assert prompt(d).endswith("|2")
        assert d.said("output")[0]["omitted"] == 2
        assert attached.summaries()[0].omitted_events == 2


async def test_then_the_oldest_events_go_and_the_newest_stays(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(250)) as d, d.manager.attach(scope(), [counting(50)]):
        await fire(d, 50, 300)
        notice, _, shown = prompt(d).partition("\n\n")
        assert "of 50 events the oldest 39 are left out and the oldest 11 shown are without" in notice
        assert shown.count("[303 characters left out]") == 11
        assert d.said("output")[0]["omitted"] == 50


async def test_the_whole_request_fits_with_its_answer(tmp_path: Path) -> None:
    wanted = {"output": "object", "schemaStr": '{"type": "object"}'}
    talking = {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 100}}
    config: dict[str, Any] = {"systemPromptText": "system " * 20, "conversational": talking, "structuredOutput": wanted}
    async with desk(tmp_path, model=Small(1_500, "{}")) as d, d.manager.attach(scope(), [counting(10, **config)]):
        for _ in range(8):
            await fire(d, 10, 250)
        assert isinstance(d.model, ScriptedModel)
        sizes = [request_tokens(request.messages) for request in d.model.requests]
        assert max(sizes) <= 1_500 - OUTPUT_TOKENS
        assert [len(request.messages) for request in d.model.requests][:2] == [2, 2]


async def test_turns_of_a_conversation_go_before_events_do(tmp_path: Path) -> None:
    talking = {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 100}}
    config: dict[str, Any] = {"systemPromptText": "s", "conversational": talking}
    async with desk(tmp_path, model=Small(1_000)) as d, d.manager.attach(scope(), [counting(1, **config)]):
        for _ in range(6):
            await fire(d, 1, 600)
        assert isinstance(d.model, ScriptedModel)
        lengths = [len(request.messages) for request in d.model.requests]
        assert lengths == [2, 4, 6, 8, 8, 8]
        assert all("omitted" not in data for data in d.said("output"))


async def test_half_of_a_small_window_is_the_most_that_is_kept_for_the_answer(tmp_path: Path) -> None:
    made = source(userPromptText="short", llmParams={"maxOutputTokens": 8_000})
    async with desk(tmp_path, model=Small(4_000)) as d, d.manager.attach(scope(), [made]):
        await fire(d, 1, 1)
        assert isinstance(d.model, ScriptedModel)
        assert d.model.requests[0].max_output_tokens == 2_000


async def test_a_template_finds_its_fields_in_a_shortened_event_too(tmp_path: Path) -> None:
    text = "{% for e in events %}{{ e.id }}{{ e.data.message | length }}{{ e.data.message }}{% endfor %}"
    async with desk(tmp_path, model=Small(300)) as d, d.manager.attach(scope(), [counting(20, text)]):
        await fire(d, 20, 2_000)
        assert d.said("error") == []


async def test_a_prompt_that_is_too_long_by_itself_is_sent_with_its_newest_event(tmp_path: Path) -> None:
    text = "long " * 1_000 + "{{ events | length }}"
    async with desk(tmp_path, model=Small(300)) as d, d.manager.attach(scope(), [counting(4, text)]):
        await fire(d, 4, 10)
        assert prompt(d).endswith("long 1")
        assert d.said("output")[0]["omitted"] == 4


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(0, 1_500))
async def test_exactly_as_much_is_left_out_as_has_to_be(lengths: list[int], room: int) -> None:
    texts = ["x" * length for length in lengths]
    short = [f"[{len(text)} characters left out]" if len(text) > 80 else text for text in texts]
    count = len(texts)
    # Every prompt there can be, from the whole one to the newest event without its body.
    bodies = [short[:gone] + texts[gone:] for gone in range(count + 1)]
    longest_first = bodies + [short[gone:] for gone in range(1, count)]

    def said(shown: list[str]) -> tuple[Message, ...]:
        return (Message("user", "".join(f"<{text}>" for text in shown)),)

    async def render(shown: Shown) -> tuple[Message, ...]:
        return said([event["data"]["message"] for event in shown.events])

    wanted = next((said(p) for p in longest_first if request_tokens(said(p)) <= room), said(longest_first[-1]))
    events = [{"id": str(n), "type": "info", "data": {"message": text}} for n, text in enumerate(texts)]
    messages, shown = await fitted(render, list(events), room)
    assert messages == await render(shown)
    assert messages == wanted
    assert shown.dropped + len(shown.events) == count
    assert request_tokens(messages) <= room or shown.dropped == count - 1


def test_a_token_is_counted_for_every_three_bytes() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abc", "abcd", "日本")] == [0, 1, 1, 2, 2]
