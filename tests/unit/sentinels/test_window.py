"""Prompts over the model's context window: what is left out, in which order, and that it is said (spec sentinels 6)."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.sentinels import Desk, desk, scope, source

from hankwatch.events.run import Info
from hankwatch.llm.client import Message, ModelInfo, Unavailable
from hankwatch.sentinels.window import Shown, fitted, request_tokens
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
        d.stream.emit(Info(message=f"{number}:" + ("some words " * length)[:length]))
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


async def test_the_oldest_events_long_texts_are_cut_first_and_the_prompt_says_so(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(2_950)) as d, d.manager.attach(scope(), [counting(8)]) as attached:
        await fire(d, 8, 1_000)
        notice, _, shown = prompt(d).partition("\n\n")
        assert notice == "[Shortened to fit the model's context window: of 8 events the long texts of 3 are cut.]"
        texts = shown.split("|")
        assert [len(text) for text in texts[:-1]] == [*[289] * 3, *[1_002] * 5]
        assert texts[0].startswith("0:some words")
        assert texts[0].endswith("some words")
        assert " [… 744 characters left out …] " in texts[0]
        assert texts[-1] == "3"
        assert d.said("output")[0]["omitted"] == 3
        assert attached.summaries()[0].omitted_events == 3


async def test_then_the_oldest_events_go_and_all_that_stay_can_be_read(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(1_000)) as d, d.manager.attach(scope(), [counting(50)]):
        await fire(d, 50, 1_000)
        notice, _, shown = prompt(d).partition("\n\n")
        *texts, omitted = shown.split("|")
        assert f"of 50 events the oldest {50 - len(texts)} are left out and the long texts of {len(texts)}" in notice
        assert 4 < len(texts) < 12
        assert [text[:8] for text in texts] == [f"{number}:some " for number in range(50 - len(texts), 50)]
        assert all(len(text) > 250 for text in texts)
        assert omitted == "50"


async def test_short_events_go_whole_and_no_text_is_lost_with_them(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(600)) as d, d.manager.attach(scope(), [counting(100)]):
        await fire(d, 100, 70)
        notice, _, shown = prompt(d).partition("\n\n")
        assert "are left out.]" in notice
        assert [len(text) for text in shown.split("|")[:-1]] == [73] * (shown.count("|"))


async def test_one_giant_event_keeps_as_much_of_its_beginning_and_end_as_fits(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(5_000)) as d, d.manager.attach(scope(), [counting(6)]):
        for number in range(5):
            d.stream.emit(Info(message=f"small {number}"))
        d.stream.emit(Info(message="head " + "some words " * 100_000 + "tail"))
        await d.manager.settle()
        shown = prompt(d)
        assert "the long texts of 1 are cut" in shown
        assert "small 0|small 1|small 2|small 3|small 4|head some words" in shown
        assert shown.endswith("words tail|1")
        tokens = request_tokens(d.model.requests[0].messages)  # type: ignore[attr-defined]
        assert 4_850 < tokens <= 4_900


async def test_what_room_dropped_events_leave_the_newest_one_has(tmp_path: Path) -> None:
    async with desk(tmp_path, model=Small(500)) as d, d.manager.attach(scope(), [counting(6)]):
        await fire(d, 5, 1_000)
        await fire(d, 1, 9_000)
        shown = prompt(d)
        assert "the oldest 4 are left out and the long texts of 2 are cut" in shown
        tokens = request_tokens(d.model.requests[0].messages)  # type: ignore[attr-defined]
        assert 360 < tokens <= 400


async def test_long_lists_and_free_form_objects_lose_their_middle(tmp_path: Path) -> None:
    wide = {"list": list(range(10_000)), "object": {f"key {number}": number for number in range(10_000)}}
    text = "{{ events[0].data.details.list | tojson }}{{ events[0].data.details.object | tojson }}"
    async with desk(tmp_path, model=Small(2_000)) as d, d.manager.attach(scope(), [counting(1, text)]):
        d.stream.emit(Info(message="m", details=wide))
        await d.manager.settle()
        assert request_tokens(d.model.requests[0].messages) <= 1_900  # type: ignore[attr-defined]
        assert "[0,1,2," in prompt(d)
        assert ",9999]" in prompt(d)
        assert d.said("output")[0]["omitted"] == 1


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
    async with desk(tmp_path, model=Small(1_400)) as d, d.manager.attach(scope(), [counting(1, **config)]):
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
        assert d.said("output")[0]["omitted"] == 3


TEXTS = st.lists(st.text(st.sampled_from("ab c9{"), max_size=30), min_size=1, max_size=12)


@given(TEXTS, st.lists(st.integers(1, 60), min_size=12, max_size=12), st.integers(60, 3_000))
async def test_what_is_shown_fits_where_it_can_and_the_newest_event_is_always_there_with_text(
    texts: list[str], times: list[int], room: int
) -> None:
    whole = [f"{number} {text * repeated}" for number, (text, repeated) in enumerate(zip(texts, times, strict=False))]

    async def render(shown: Shown) -> tuple[Message, ...]:
        said = "".join(f"<{event['data']['message']}>" for event in shown.events)
        return (Message("user", (shown.notice if shown.omitted else "") + said),)

    events: list[Any] = [{"id": str(n), "type": "info", "data": {"message": text}} for n, text in enumerate(whole)]
    messages, shown = await fitted(render, list(events), room)
    assert messages == await render(shown)
    left = [event["data"]["message"] for event in shown.events]
    least = request_tokens(await render(Shown([*shown.events[-1:]], 1, len(whole) - 1)))
    assert request_tokens(messages) <= room or (len(left) == 1 and len(left[0]) <= 40 and least > room)
    assert shown.dropped + len(left) == len(whole)
    for text, given_text in zip(left, whole[shown.dropped :], strict=True):
        assert text == given_text or (len(text) <= 1_800 and "…" in text and text[:5] == given_text[:5])
    assert len(left[-1]) >= min(len(whole[-1]), 40)
    assert shown.omitted == len(whole) - sum(a == b for a, b in zip(left[::-1], whole[::-1], strict=False))
    assert shown.omitted > 0 or left == whole
